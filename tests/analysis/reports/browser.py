"""A headless Chromium that opens reports, and what it saw: pictures, errors, requests."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAM, DRIVER = "chromium", "chromedriver"
SECONDS = 120.0  # on a machine that is busy
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1400,900")
VIEWS = """
const models = Bokeh.documents.flatMap((one) => one.roots()).flatMap((one) => [...one.references()]);
const root = models.find((one) => one.name === arguments[0]);
const view = Bokeh.index.find_one(root);
const frame = view.canvas_view.el.getBoundingClientRect();
"""


class Browser:
    """A browser with a page open.

    Parameters
    ----------
    driver
        Selenium's driver.
    """

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, scheme: str = "light", width: int = 1400) -> None:
        """Open a page in a colour scheme, and wait until its pictures are drawn."""
        self.dress(scheme)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(page.resolve().as_uri())
        self.wait("window.Bokeh !== undefined && document.getElementById('figures') !== null")
        items = "JSON.parse(document.getElementById('figures').textContent)"
        self.wait(f"{items}.every((one) => document.getElementById(one.target_id).childElementCount > 0)")

    def dress(self, scheme: str) -> None:
        """Set the preferred colour scheme."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a script returns."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: str) -> None:
        """Wait until a condition of the page holds."""
        until = time.monotonic() + SECONDS
        while not self.run(f"return {condition}"):
            assert time.monotonic() < until, condition
            time.sleep(0.05)

    def colours(self, name: str) -> int:
        """Return how many colours the canvas of a picture has: 1 if nothing is drawn."""
        script = """
        const canvas = view.canvas_view.primary.canvas;
        const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
        """
        return int(self.run(VIEWS + script, name))

    def picture(self, name: str) -> str:
        """Return what the canvas of a picture shows, as the address of an image."""
        return str(self.run(VIEWS + "return view.canvas_view.primary.canvas.toDataURL()", name))

    def hover(self, name: str, node: int = 0, column: str = "node") -> list[str]:
        """Move the pointer to a node, which has a `column`, and return the texts that are shown."""
        from selenium.webdriver.common.actions.action_builder import ActionBuilder

        script = """
        document.getElementById(arguments[0]).scrollIntoView({block: "center"});
        const place = view.canvas_view.el.getBoundingClientRect();
        const {data_source} = root.renderers.find((one) => one.data_source.columns().includes(arguments[2]));
        const [x, y] = ["x", "y"].map((axis) => data_source.get(axis)[arguments[1]]);
        return [place.x + view.frame.x_scale.compute(x), place.y + view.frame.y_scale.compute(y)];
        """
        x, y = self.run(VIEWS + script, name, node, column)
        pointer = ActionBuilder(self.driver)
        pointer.pointer_action.move_to_location(int(x) - 2, int(y))
        pointer.pointer_action.move_to_location(int(x), int(y))
        pointer.perform()
        self.wait("document.querySelector('.bk-Tooltip')?.shadowRoot.querySelector('.bk-tooltip-row-value')")
        rows = "document.querySelector('.bk-Tooltip').shadowRoot.querySelectorAll('.bk-tooltip-row-value')"
        return [str(text) for text in self.run(f"return [...{rows}].map((row) => row.textContent.trim())")]

    def zoom(self, name: str, steps: int) -> tuple[float, float]:
        """Turn the wheel over a picture; return processor seconds a step, and the factor."""
        script = """
        const done = arguments[arguments.length - 1];
        const width = () => root.x_range.end - root.x_range.start, before = width();
        const where = {clientX: frame.x + frame.width / 2, clientY: frame.y + frame.height / 2};
        const how = {deltaY: -20, bubbles: true, cancelable: true, composed: true, ...where};
        let left = arguments[1];
        const step = () => {
          if (left-- === 0) { done(before / width()); return; }
          view.canvas_view.events_el.dispatchEvent(new WheelEvent("wheel", how));
          requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
        """
        begin = self._processor_seconds()
        factor = self.driver.execute_async_script(VIEWS + script, name, steps)
        return (self._processor_seconds() - begin) / steps, float(factor)

    def _processor_seconds(self) -> float:
        """Return how long the page's thread has run."""
        metrics = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    def errors(self) -> list[str]:
        """Return the warnings and errors in the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]

    def requests(self) -> set[str]:
        """Return the addresses that were asked for since the last call, without those inside the page."""
        events = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        asked = {
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        }
        return {url for url in asked if not url.startswith("data:")}


@contextmanager
def opened() -> Iterator[Browser]:
    """Yield a browser; skip the test, with the reason, where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program, driver = shutil.which(PROGRAM), shutil.which(DRIVER)
    if program is None or driver is None:
        pytest.skip(f"{PROGRAM} or {DRIVER} is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    found.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    found.set_script_timeout(SECONDS)
    try:
        yield Browser(found)
    finally:
        found.quit()
