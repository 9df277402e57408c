import { describe, expect, it } from "vitest";
import { curlCall, pythonCall, shell } from "./snippets";

const call = { origin: "http://127.0.0.1:8000", model: "holiday photos@production", version: null, withKey: true, neighbors: 5, falseAlarmRate: null };

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

  it("name the rate of false alarms if photos are refused", () => {
    const refusing = { ...call, falseAlarmRate: 0.01 };
    expect(curlCall(refusing)).toContain("&false_alarm_rate=0.01");
    expect(pythonCall(refusing)).toContain('"false_alarm_rate": 0.01');
    expect(curlCall(call) + pythonCall(call)).not.toContain("false_alarm_rate");
  });
});
