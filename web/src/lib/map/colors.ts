/** Colors of the points.
 *
 * Hues that color-blind people can tell apart (Okabe and Ito), each in three lightnesses. Groups
 * after the twentieth use the colors again; pointing at a name in the list shows which are meant.
 */
export type Color = readonly [red: number, green: number, blue: number];

const PALETTE: Color[] = [
  "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#b8a900",
  "#3b3fa0", "#8c5a00", "#5cc9a4", "#8f2d00", "#8e3c72", "#9fd0ee", "#7d7400",
  "#5a8fd8", "#f5c367", "#00664a", "#f2935c", "#e3b3d0", "#2e7d9c",
].map(parse);

export const GRAY: Color = [136, 142, 152];

// From blue to amber, as cividis does, which color-blind people see, too; without its ends, which
// are lost on a dark or a light page.
const RAMP: Color[] = ["#2f62b5", "#6281ad", "#93938f", "#b79a5c", "#d79a24", "#f2aa00"].map(parse);

function parse(hex: string): Color {
  const value = Number.parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

export function groupColor(number: number): Color {
  return number < 0 ? GRAY : PALETTE[number % PALETTE.length]!;
}

export function probabilityColor(probability: number): Color {
  const place = Math.max(0, Math.min(1, probability)) * (RAMP.length - 1);
  const low = RAMP[Math.floor(place)]!;
  const high = RAMP[Math.min(RAMP.length - 1, Math.floor(place) + 1)]!;
  const share = place - Math.floor(place);
  return [0, 1, 2].map((channel) => Math.round(low[channel]! + (high[channel]! - low[channel]!) * share)) as unknown as Color;
}

export const css = (color: Color): string => `rgb(${color[0]} ${color[1]} ${color[2]})`;

export interface Paint {
  count: number;
  /** The color's number: a group, a label's number, or a step of probability. */
  color: (row: number) => Color;
  hidden: (row: number) => boolean;
  faded: (row: number) => boolean;
}

const FADED_ALPHA = 26;

/** RGBA of each row. */
export function painted(paint: Paint): Uint8Array {
  const colors = new Uint8Array(paint.count * 4);
  for (let row = 0; row < paint.count; row += 1) {
    if (paint.hidden(row)) continue;
    const color = paint.color(row);
    const at = row * 4;
    colors[at] = color[0];
    colors[at + 1] = color[1];
    colors[at + 2] = color[2];
    colors[at + 3] = paint.faded(row) ? FADED_ALPHA : 255;
  }
  return colors;
}
