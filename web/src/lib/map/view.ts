/** The part of the map that is shown, and how it maps to the screen.
 *
 * Points lie between -1 and 1; y grows upward on the map and downward on the screen. At zoom 1 the
 * whole map fits, whatever the size of the window: a link shows the same place everywhere.
 */
export interface View {
  x: number; // center
  y: number;
  zoom: number;
}

export interface Size {
  width: number;
  height: number;
}

export interface Point {
  x: number;
  y: number;
}

export interface Area {
  left: number;
  right: number;
  bottom: number;
  top: number;
}

export const WHOLE: View = { x: 0, y: 0, zoom: 1 };
const MAX_ZOOM = 4000;
const MIN_ZOOM = 0.5;
const MARGIN = 1.06;

/** Pixels per unit of the map. */
export function pixelsPerUnit(view: View, size: Size): number {
  return (Math.max(1, Math.min(size.width, size.height)) / (2 * MARGIN)) * view.zoom;
}

export function toScreen(point: Point, view: View, size: Size): Point {
  const scale = pixelsPerUnit(view, size);
  return { x: size.width / 2 + (point.x - view.x) * scale, y: size.height / 2 - (point.y - view.y) * scale };
}

export function toMap(point: Point, view: View, size: Size): Point {
  const scale = pixelsPerUnit(view, size);
  return { x: view.x + (point.x - size.width / 2) / scale, y: view.y - (point.y - size.height / 2) / scale };
}

export function shownArea(view: View, size: Size, margin = 0): Area {
  const scale = pixelsPerUnit(view, size);
  const halfWidth = (size.width / 2 + margin) / scale;
  const halfHeight = (size.height / 2 + margin) / scale;
  return { left: view.x - halfWidth, right: view.x + halfWidth, bottom: view.y - halfHeight, top: view.y + halfHeight };
}

export function limited(view: View): View {
  const between = (value: number, low: number, high: number) => Math.max(low, Math.min(high, value));
  return { x: between(view.x, -1.2, 1.2), y: between(view.y, -1.2, 1.2), zoom: between(view.zoom, MIN_ZOOM, MAX_ZOOM) };
}

/** Moves the map by pixels of the screen. */
export function panned(view: View, dx: number, dy: number, size: Size): View {
  const scale = pixelsPerUnit(view, size);
  return limited({ ...view, x: view.x - dx / scale, y: view.y + dy / scale });
}

/** Zooms so that the place under `at` (pixels) stays where it is. */
export function zoomedAt(view: View, factor: number, at: Point, size: Size): View {
  const fixed = toMap(at, view, size);
  const next = limited({ ...view, zoom: view.zoom * factor });
  const moved = toMap(at, next, size);
  return limited({ zoom: next.zoom, x: next.x + fixed.x - moved.x, y: next.y + fixed.y - moved.y });
}

/** The view in an address: `{x: "0.1234", y: "-0.5", zoom: "12"}`; nulls for the whole map. */
export function toQuery(view: View): Record<"x" | "y" | "zoom", string | null> {
  const whole = Math.abs(view.x) < 1e-4 && Math.abs(view.y) < 1e-4 && Math.abs(view.zoom - 1) < 1e-3;
  if (whole) return { x: null, y: null, zoom: null };
  const digits = 3 + Math.ceil(Math.log10(Math.max(1, view.zoom)));
  return { x: view.x.toFixed(digits), y: view.y.toFixed(digits), zoom: String(Number(view.zoom.toPrecision(4))) };
}

export function fromQuery(query: Record<string, string>): View {
  const number = (text: string | undefined, otherwise: number) => {
    const value = Number(text);
    return text && Number.isFinite(value) ? value : otherwise;
  };
  return limited({ x: number(query.x, 0), y: number(query.y, 0), zoom: number(query.zoom, 1) });
}
