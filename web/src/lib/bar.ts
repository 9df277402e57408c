/** A bar at the lower edge: messages appear above it. */
export function lowerBar(node: HTMLElement) {
  const root = document.documentElement.style;
  const observer = new ResizeObserver(() => root.setProperty("--bar", `${node.offsetHeight}px`));
  observer.observe(node);
  return {
    destroy() {
      observer.disconnect();
      root.removeProperty("--bar");
    },
  };
}
