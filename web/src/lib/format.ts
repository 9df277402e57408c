/** Numbers, sizes, durations and times as people read them. */
const integers = new Intl.NumberFormat();
const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export const integer = (value: number): string => integers.format(value);

export function count(value: number, one: string, many = `${one}s`): string {
  return `${integer(value)} ${value === 1 ? one : many}`;
}

export function percent(share: number | null | undefined, digits = 0): string {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(digits)} %`;
}

/** A text of the service, with percentages written as on the page: "95%" becomes "95 %". */
export const spacedPercent = (text: string): string => text.replace(/(\d)%/g, "$1 %");

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

export const dateTime = (iso: string): string => clock.format(new Date(iso));

export function ago(iso: string, now = Date.now()): string {
  const seconds = (now - new Date(iso).getTime()) / 1000;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${count(Math.floor(seconds / 60), "minute")} ago`;
  if (seconds < 86400) return `${count(Math.floor(seconds / 3600), "hour")} ago`;
  return dateTime(iso);
}
