import { describe, expect, it } from "vitest";
import { curlCall, pythonCall, shell } from "./snippets";

const call = { origin: "http://127.0.0.1:8000", model: "holiday photos@production", version: null, withKey: true, neighbors: 5 };

describe("snippets", () => {
  it("quote for the shell", () => {
    expect(shell("plain-1.jpg")).toBe("plain-1.jpg");
    expect(shell("it's")).toBe(`'it'\\''s'`);
  });

  it("name the model, the alias and the key", () => {
    expect(curlCall(call)).toContain("/v1/models/holiday%20photos@production:predict?top_k=3&neighbors=5'");
    expect(curlCall(call)).toContain("TEMI_API_KEY");
    expect(curlCall({ ...call, withKey: false })).not.toContain("Authorization");
    expect(pythonCall({ ...call, version: 2 })).toContain("/versions/2:predict");
  });
});
