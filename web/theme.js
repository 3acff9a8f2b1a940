// A classic script in the head: the remembered theme must be in place before the first paint.
(() => {
  try {
    const theme = localStorage.getItem("gputap.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage may be blocked; the system's theme is then used.
  }
})();
