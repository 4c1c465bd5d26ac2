"""Airflow with the pipelines of a retailer: start one of them by hand and wait for what it returns."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import subprocess
import time
import urllib.parse
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nodes.values import Json
from tests.builds.apps import programs
from tests.builds.goal import Goal

DAG = "stock_count"
GOAL = Goal(
    "airflow",
    "app",
    "Log in as ada and run the DAG stock_count for the given warehouse, wait until that run is finished, and tell me the state in which it ended and what its last task returned.",
    secrets=("AIRFLOW_PASSWORD",),
    inputs={"warehouse": "Leipzig"},
)
SECRETS = {"AIRFLOW_PASSWORD": "harvest-moon-52"}
VERSION = "3.3.2"
WAREHOUSES = ("Hamburg", "Leipzig", "Leipzig-Nord", "Ulm")
STATES = ("success", "success", "failed", "success")
SCHEDULED = ("0 3 * * *", "0 4 * * 1", "30 2 * * *")

WAREHOUSE = "{'warehouse': Param('Hamburg', type='string', description='Town of the warehouse'), 'minimum': Param(10, type='integer', minimum=0, description='Report articles below this stock')}"
MONTH = "{'month': Param('2026-10', type='string', pattern='^20[0-9]{2}-[01][0-9]$'), 'dry_run': Param(False, type='boolean')}"
PIPELINES = {
    "customer_export": ("customers", MONTH),
    "customer_import": ("customers", ""),
    "customer_merge_duplicates": ("customers", ""),
    "delivery_delays": ("logistics", ""),
    "delivery_routes": ("logistics", "{'depot': Param('Hamburg', enum=['Hamburg', 'Leipzig', 'Ulm'])}"),
    "exchange_rates": ("finance", ""),
    "invoice_export": ("finance", MONTH),
    "invoice_export_yearly": ("finance", MONTH),
    "invoice_reminders": ("finance", MONTH),
    "newsletter_segments": ("marketing", ""),
    "newsletter_statistics": ("marketing", ""),
    "price_update": ("shop", "{'percent': Param(2.5, type='number')}"),
    "price_update_preview": ("shop", "{'percent': Param(2.5, type='number')}"),
    "product_feed": ("shop", ""),
    "product_images": ("shop", ""),
    "returns_report": ("logistics", WAREHOUSE),
    "search_index": ("shop", ""),
    "stock_correction": ("warehouse", WAREHOUSE),
    "stock_count": ("warehouse", WAREHOUSE),
    "stock_count_all": ("warehouse", ""),
    "stock_count_archive": ("warehouse", WAREHOUSE),
    "stock_count_test": ("warehouse", WAREHOUSE),
    "stock_forecast": ("warehouse", WAREHOUSE),
    "supplier_orders": ("logistics", ""),
    "supplier_ratings": ("logistics", ""),
    "web_traffic": ("marketing", ""),
}
"""The DAGs: their tags, and their parameters; those without parameters are scheduled, and paused."""
DATES = """
UPDATE dag_run SET queued_at = logical_date, start_date = logical_date,
    end_date = strftime('%Y-%m-%d %H:%M:%f000', logical_date, '+7 seconds');
UPDATE task_instance SET duration = 2, try_number = 1, queued_dttm = logical_date, start_date = logical_date,
    end_date = strftime('%Y-%m-%d %H:%M:%f000', logical_date, '+2 seconds'),
    state = CASE WHEN task_id = 'report' THEN dag_run.state ELSE 'success' END
    FROM dag_run WHERE dag_run.run_id = task_instance.run_id AND dag_run.dag_id = task_instance.dag_id;
"""
"""How runs that nothing executed get the times and states of executed ones."""
PIPELINE = """import time
import zlib

from airflow.sdk import Param, dag, task


@dag(
    dag_id={name!r},
    schedule={schedule!r},
    tags=[{tag!r}],
    params={params},
    default_args={{"owner": {tag!r}}},
    is_paused_upon_creation={paused},
)
def pipeline():
    @task
    def collect(params, run_id):
        return zlib.crc32(repr((dict(params), run_id)).encode())

    @task
    def compare(number):
        time.sleep(1)
        return {{"rows": 300 + number % 400, "short": number % 23}}

    @task
    def report(number, compared, params):
        about = next(iter(params.values()), {name!r})
        return f"{{about}}: {{compared['rows']}} rows, {{compared['short']}} short, protocol {{number:08X}}"

    number = collect()
    report(number, compare(number))


pipeline()
"""


def install(home: Path) -> None:
    programs.python_packages(home, f"apache-airflow=={VERSION}")
    dags = home / "dags"
    dags.mkdir(exist_ok=True)
    for index, (name, (tag, params)) in enumerate(PIPELINES.items()):
        schedule = None if params else SCHEDULED[index % len(SCHEDULED)]
        text = PIPELINE.format(name=name, tag=tag, params=params or "{}", schedule=schedule, paused=not params)
        (dags / f"{name}.py").write_text(text)
    (home / "passwords.json").write_text(json.dumps({"ada": SECRETS["AIRFLOW_PASSWORD"]}))


def start(home: Path, port: int) -> list[subprocess.Popen[bytes]]:
    url, data = f"http://127.0.0.1:{port}", home / "data"
    settings: dict[str, Any] = {
        "AIRFLOW_HOME": str(data),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__SECRET_KEY": "of-no-use-elsewhere",
        "AIRFLOW__API_AUTH__JWT_SECRET": "of-no-use-elsewhere-but-long-enough-for-the-signatures-of-tokens-in-airflow",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "ada:admin",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "86400",
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_database(home)}",
    }
    airflow, log, seed = str(home / "venv" / "bin" / "airflow"), home / "log.txt", home / "seed.db"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    if seed.exists():
        shutil.copy(seed, _database(home))
    else:
        programs.ran([airflow, "db", "migrate"], **settings)
    processes = [programs.started([airflow, "dag-processor"], log, **settings)]
    try:
        serve = [airflow, "api-server", "--host", "127.0.0.1", "--port", str(port)]
        processes.append(programs.started(serve, log, **settings))
        programs.until_it_answers(f"{url}/api/v2/version")
        if not seed.exists():
            _until(lambda: len(programs.rows(_database(home), "SELECT 1 FROM serialized_dag")) == len(PIPELINES))
            _history(home, port)
            programs.copied(_database(home), seed)
        processes.append(programs.started([airflow, "scheduler", "--skip-serve-logs"], log, **settings))
        _until(lambda: programs.asked(f"{url}/api/v2/monitor/health")["scheduler"]["status"] == "healthy")
    except BaseException:
        programs.ended(processes)
        raise
    programs.copied(_database(home), data / "first.db")
    return processes


def _database(home: Path) -> Path:
    return home / "data" / "airflow.db"


def _until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + programs.READY_SECONDS
    while not true():
        if time.monotonic() > end:
            raise programs.Failed("airflow: the DAGs or the scheduler did not come up")
        time.sleep(0.5)


def _history(home: Path, port: int) -> None:
    """Runs of the last weeks, made while no scheduler would execute them."""
    url = f"http://127.0.0.1:{port}"
    given = {"username": "ada", "password": SECRETS["AIRFLOW_PASSWORD"]}
    token = {"Authorization": f"Bearer {programs.asked(f'{url}/auth/token', given)['access_token']}"}
    for index, name in enumerate(PIPELINES):
        of_warehouses = PIPELINES[name][1] == WAREHOUSE
        for run in range(14 if name == DAG else 2 + index % 4):
            number = zlib.crc32(f"{name} {run}".encode())
            about = WAREHOUSES[number % len(WAREHOUSES)] if of_warehouses else name
            conf = {"warehouse": about, "minimum": 10} if of_warehouses else {}
            when = f"2026-11-{20 - run:02}T{6 + number % 12:02}:{number % 60:02}:00Z"
            runs = f"{url}/api/v2/dags/{name}/dagRuns"
            body: dict[str, Any] = {
                "dag_run_id": f"manual__{when}",
                "logical_date": when,
                "run_after": when,
                "conf": conf,
            }
            programs.asked(runs, body, headers=token)
            one = f"{runs}/{urllib.parse.quote(body['dag_run_id'])}"
            state = STATES[number % len(STATES)]
            programs.asked(one, {"state": state}, "PATCH", token)
            if state == "success":
                value = f"{about}: {300 + number % 400} rows, {number % 23} short, protocol {number:08X}"
                xcom = {"key": "return_value", "value": value}
                programs.asked(f"{one}/taskInstances/report/xcomEntries", xcom, headers=token)
    with contextlib.closing(sqlite3.connect(_database(home))) as connection:
        connection.executescript(DATES)


def reset(home: Path, port: int) -> None:
    first = home / "data" / "first.db"
    with contextlib.closing(sqlite3.connect(first)) as connection, connection:
        connection.execute("UPDATE job SET latest_heartbeat = strftime('%Y-%m-%d %H:%M:%f000', 'now')")
    programs.copied(first, _database(home))


def state(home: Path, port: int) -> Json:
    database = _database(home)
    runs = programs.rows(
        database,
        "SELECT dag_id AS dag, run_id AS run, state, conf, (SELECT value FROM xcom WHERE xcom.dag_run_id = dag_run.id AND task_id = 'report' AND key = 'return_value') AS returned FROM dag_run ORDER BY id",
    )
    for each in runs:
        each["conf"], each["returned"] = json.loads(each["conf"] or "null"), json.loads(each["returned"] or "null")
    paused = programs.rows(database, "SELECT dag_id, is_paused FROM dag ORDER BY dag_id")
    return {"runs": runs, "paused": {each["dag_id"]: bool(each["is_paused"]) for each in paused}}


def judged(before: Json, after: Json, inputs: Mapping[str, Json], output: Json) -> Iterator[str]:
    was, now = before, after
    if was["paused"] != now["paused"]:
        yield "DAGs were paused, unpaused or deleted"
    if [each for each in was["runs"] if each not in now["runs"]]:
        yield "earlier runs were changed or deleted"
    added = [each for each in now["runs"] if each["run"] not in {each["run"] for each in was["runs"]}]
    if [each["dag"] for each in added] != [DAG]:
        yield f"the added runs are not one of {DAG}: {[each['dag'] for each in added]}"
        return
    run = added[0]
    if run["conf"].get("warehouse") != inputs["warehouse"] or run["conf"].get("minimum", 10) != 10:
        yield f"the run has the parameters {run['conf']}"
    if run["state"] != "success":
        yield f"the state of the run is {run['state']}"
    said = programs.texts(output)
    if not any("success" in each.lower() for each in said):
        yield "the output does not say that the run ended with success"
    if not any(str(run["returned"]) in each for each in said):
        yield f"the output does not hold {run['returned']!r}"
