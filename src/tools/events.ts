import type { Tier } from '../api/v1alpha1/common.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json } from '../lib/json.ts';

/** The gates of a forge, in order. */
export const GATES = [
  'normalization',
  'shape',
  'static',
  'schemas',
  'build',
  'tests',
  'output-schema',
  'resources',
  'policy',
  'judge',
  'registration',
] as const;
export type Gate = (typeof GATES)[number];

export interface GateResult {
  gate: Gate;
  passed: boolean;
  /** A short note for users: `3/3 ×2`, `8 ms · 2.1 MiB`, `0.93`. Printable and bounded. */
  note: string;
}

/** An event of an agent, for the transcript, the trace and NATS. One union, so that no sink misses a kind. */
export type AgentEvent =
  | { type: 'session-start'; session: string; model: string; policy: string; level: string }
  | { type: 'message-received'; text: string }
  | { type: 'turn-start'; turn: number }
  | { type: 'message'; text: string; delta: boolean }
  | { type: 'reasoning'; text: string }
  | { type: 'tool-call'; id: string; tool: string; input: Json }
  | {
      type: 'tool-result';
      id: string;
      tool: string;
      ok: boolean;
      code?: ErrorCode;
      summary: string;
      milliseconds: number;
    }
  | { type: 'forge-start'; tool: string; mode: string; description: string }
  | { type: 'forge-gate'; tool: string; result: GateResult }
  | { type: 'forge-accepted'; tool: string; digest: string; tier: Tier }
  | { type: 'forge-refused'; tool: string; gate: Gate; code: ErrorCode; message: string }
  | { type: 'promotion'; tool: string; digest: string; from: Tier; to: Tier; state: string; note: string }
  | { type: 'demotion'; tool: string; digest: string; reason: string }
  | { type: 'approval-requested'; request: string; tool: string; risk: string; reason: string }
  | { type: 'approval-decided'; request: string; decision: string; by: string }
  | { type: 'warning'; code: string; message: string }
  | { type: 'error'; code: ErrorCode; message: string; attempt: number }
  | { type: 'turn-end'; turn: number; inputTokens: number; outputTokens: number }
  | { type: 'session-end'; turns: number; toolCalls: number; inputTokens: number; outputTokens: number; reply: string };

/** An event with its time and origin, which the owner of the sink adds. */
export type StampedEvent = AgentEvent & { time: string; agent: string; session: string; rootMessage: string };

/** Receives an event. Must not throw, so that reporting never disturbs the work. */
export type EventSink = (event: AgentEvent) => void;
