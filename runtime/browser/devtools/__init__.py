"""DevTools protocol: our connection to Chromium, the origin guard, emulation and downloads."""
