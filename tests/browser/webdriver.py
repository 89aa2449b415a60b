"""A browser under test: as much of the WebDriver protocol (W3C) as the checks of the page need, on Python's own library."""

import base64
import json
import re
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's name for a reference to an element
PATIENCE_S = 60  # for what takes a second on a quiet machine


class NoBrowser(Exception):
    """It is installed and does not start."""


class Browser:
    """One headless Chromium behind one chromedriver; both end with the block."""

    def __init__(self, driver, browser):
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.root = f"http://127.0.0.1:{self._port()}"
        arguments = ["--headless=new", "--disable-gpu", "--no-first-run", "--window-size=1280,900",
                     "--disable-dev-shm-usage", "--force-prefers-reduced-motion", "--force-device-scale-factor=1", "--force-color-profile=srgb",
                     "--no-sandbox"]  # containers and root have none; the pages are our own
        wanted = {"browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"},
                  "goog:chromeOptions": {"binary": browser, "args": arguments}}
        try:
            answer = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except Exception as error:
            self.driver.kill()
            self.driver.wait()
            raise NoBrowser(str(error).splitlines()[0]) from None
        self.session = f"/session/{answer['sessionId']}"
        self.version = answer["capabilities"]["browserVersion"]

    def _port(self):
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                return int(found.group(1))
        self.driver.wait()
        raise NoBrowser("chromedriver ended before it named its port")

    def _ask(self, method, path, body=None):
        data = None if method == "GET" or method == "DELETE" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.root + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=4 * PATIENCE_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {json.load(error)['value']['message']}") from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._ask("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait(PATIENCE_S)

    def open(self, url):
        self._ask("POST", self.session + "/url", {"url": url})

    def look(self, width, scheme):
        """As on a screen so wide, whose owner likes it light or dark."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        scheme = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        for command, given in ("setDeviceMetricsOverride", metrics), ("setEmulatedMedia", scheme):
            self._ask("POST", self.session + "/goog/cdp/execute", {"cmd": "Emulation." + command, "params": given})

    def run(self, script, *arguments):
        """What a function body returns in the page."""
        return self._ask("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def run_until_called(self, script, *arguments):
        """What the function body hands to its last argument, a function."""
        return self._ask("POST", self.session + "/execute/async", {"script": script, "args": list(arguments)})

    def wait(self, what, condition, *arguments):
        """Until the expression is true in the page; fails with `what` where it never is."""
        end = time.monotonic() + PATIENCE_S
        while not self.run(f"return Boolean({condition});", *arguments):
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not within {PATIENCE_S} s")
            time.sleep(0.02)

    def _find(self, selector):
        return self._ask("POST", self.session + "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def show(self, selector):
        self.run("document.querySelector(arguments[0]).scrollIntoView({behavior: 'instant', block: 'center'})", selector)

    def click(self, selector):
        self.show(selector)
        self._ask("POST", f"{self.session}/element/{self._find(selector)}/click")

    def type(self, selector, text):
        self._ask("POST", f"{self.session}/element/{self._find(selector)}/value", {"text": text})

    def clear(self, selector):
        self._ask("POST", f"{self.session}/element/{self._find(selector)}/clear")

    def picture(self, selector):
        """A PNG of the element as it is drawn, base64."""
        self.show(selector)
        return self._ask("GET", f"{self.session}/element/{self._find(selector)}/screenshot")

    def pdf(self):
        """The page on paper. chromedriver waits ten seconds for it, which a busy machine needs more than once."""
        for last in (False, False, True):
            try:
                return base64.b64decode(self._ask("POST", self.session + "/print", {"background": True}))
            except RuntimeError as error:
                if last or "timeout" not in str(error):
                    raise

    def complaints(self):
        """Errors on the console since the last call."""
        log = self._ask("POST", self.session + "/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if entry["level"] == "SEVERE"]
