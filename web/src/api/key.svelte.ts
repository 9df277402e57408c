/** The API key of this browser tab. Kept until the tab is closed. */
const STORED = "temi-key";

class ApiKey {
  value = $state(sessionStorage.getItem(STORED) ?? "");
  /** The service answered 401: the shell shows the key dialog. */
  needed = $state(false);

  set(value: string): void {
    this.value = value.trim();
    this.needed = false;
    if (this.value) sessionStorage.setItem(STORED, this.value);
    else sessionStorage.removeItem(STORED);
  }
}

export const apiKey = new ApiKey();

export function authorization(): Record<string, string> {
  return apiKey.value ? { Authorization: `Bearer ${apiKey.value}` } : {};
}
