// Playwright's driver, loaded once: whoever connects to the socket has a driver of its own, which ends with the connection.
// It speaks as `cli.js run-driver` does on its streams: messages of JSON, each behind its length in four bytes.
//
//     node drivers.js LIB SOCKET     serve on this socket, until standard input is closed; LIB is the folder of Playwright's bundles
const net = require('net');
const [lib, address] = process.argv.slice(2);
require(lib + '/bootstrap');
const { DispatcherConnection, RootDispatcher, PlaywrightDispatcher, createPlaywright } = require(lib + '/coreBundle').server;

function serve(socket) {
  const connection = new DispatcherConnection();
  let replacer, scope, unread = Buffer.alloc(0);
  new RootDispatcher(connection, async (root, { sdkLanguage, supportsLoneSurrogates }) => {
    if (!supportsLoneSurrogates)
      replacer = (_key, value) => typeof value === 'string' ? value.toWellFormed() : value;
    scope = new PlaywrightDispatcher(root, createPlaywright({ sdkLanguage, isClientCollocatedWithServer: true }));
    return scope;
  });
  connection.onmessage = message => {
    const data = Buffer.from(JSON.stringify(message, replacer));
    const length = Buffer.alloc(4);
    length.writeUInt32LE(data.length);
    socket.write(Buffer.concat([length, data]));
  };
  socket.on('data', data => {
    unread = Buffer.concat([unread, data]);
    while (unread.length >= 4 && unread.length >= 4 + unread.readUInt32LE(0)) {
      const end = 4 + unread.readUInt32LE(0);
      const message = JSON.parse(unread.subarray(4, end).toString());
      unread = unread.subarray(end);
      connection.dispatch(message);
    }
  });
  // What it holds on to, connections to browsers above all, goes with whoever asked for it.
  const leave = () => {
    connection.onmessage = () => {};
    scope?.cleanup().catch(() => {});
    scope = undefined;
    socket.destroy();
  };
  socket.on('end', leave).on('error', leave);
}

net.createServer({ allowHalfOpen: true }, serve).listen(address, () => process.stdout.write('ready\n'));
process.stdin.on('end', () => process.exit(0)).resume();
