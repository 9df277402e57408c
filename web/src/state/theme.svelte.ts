/** Light or dark: as the system, until a person chooses. */
const STORED = "temi-theme";
type Choice = "system" | "light" | "dark";

class Theme {
  choice: Choice = $state((localStorage.getItem(STORED) as Choice | null) ?? "system");

  constructor() {
    this.apply();
  }

  set(choice: Choice): void {
    this.choice = choice;
    localStorage.setItem(STORED, choice);
    this.apply();
  }

  private apply(): void {
    if (this.choice === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.choice;
  }
}

export const theme = new Theme();
