import { type Static, type TObject, type TProperties, Type } from 'typebox';
import { closed, LevelName, ObjectName, Tier } from '../../api/v1alpha1/common.ts';
import { CALL_ORIGINS } from '../contract.ts';
import { GATES } from './gates.ts';
import { AnyJson, Code, SessionId, text } from './parts.ts';

/**
 * The events of an agent: the types of the engine, the check of reported events at the gateway and OpenAPI derive from these members.
 * The engine imports the types alone, so that a pod does not load the schema library.
 */

const MAX_TEXT = 100_000;
const note = (maxLength = MAX_TEXT) => text(maxLength, 'Text.', 0);
// Generous: models choose tool names and call ids, and one invalid member refuses the whole batch.
const name = note(4_096);
const digest = note(128);
/** Words of the pod for one line of a terminal: no control characters, line separators, and no marks that are invisible or change the direction. */
const line = (maxLength: number) =>
  Type.String({
    pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]*$',
    maxLength,
    description: 'One line of text.',
  });
const count = Type.Integer({ minimum: 0 });
const gate = Type.Enum([...GATES]);

/** Members of a call by another call: a step of a composed tool, or a call by a program of the model. */
const NESTING = {
  origin: Type.Optional(Type.Enum([...CALL_ORIGINS])),
  /** The number of calls around it. */
  depth: Type.Optional(Type.Integer({ minimum: 1, maximum: 16 })),
};

export const GateResult = Type.Object(
  {
    gate,
    passed: Type.Boolean(),
    note: text(MAX_TEXT, 'A short note for users: `3/3 ×2`, `8 ms · 2.1 MiB`, `0.93`. Printable and bounded.', 0),
  },
  closed,
);
export type GateResult = Static<typeof GateResult>;

/** The members of events of a run of `agent_run`. Absent in events of the message itself. */
const RUN = {
  contextId: Type.Optional(note(64)),
  /** The contexts around the run, outermost first. The first one is the root message. */
  ancestorIds: Type.Optional(Type.Array(note(128), { maxItems: 16 })),
};

/** The members of each kind, without `type`. */
export const EVENT_MEMBERS = {
  'session-start': { session: SessionId, model: line(512), policy: ObjectName, level: LevelName },
  /** `from`: the agent that sent the message. */
  'message-received': { text: note(), from: Type.Optional(line(253)) },
  /** The files and memory values that every session of the agent begins with, as they are for this message. */
  context: {
    characters: count,
    parts: Type.Array(Type.Object({ kind: line(16), name: line(256), state: line(16), characters: count }, closed), {
      maxItems: 16,
    }),
  },
  'turn-start': { turn: count },
  message: { text: note(), delta: Type.Boolean() },
  reasoning: { text: note() },
  retry: { model: line(512), attempt: count, code: Code, milliseconds: Type.Number({ minimum: 0 }) },
  compaction: { items: count, characters: count },
  'model-routed': { points: count, complexity: line(16), model: line(512) },
  'tool-call': { id: name, ...NESTING, tool: name, input: AnyJson },
  'tool-result': {
    id: name,
    ...NESTING,
    tool: name,
    ok: Type.Boolean(),
    code: Type.Optional(Code),
    summary: note(),
    milliseconds: Type.Number({ minimum: 0 }),
  },
  /** A tool of the agent created a file of the workspace. */
  'file-created': { path: note(4_096), bytes: count },
  'forge-start': { tool: name, mode: line(64), description: note() },
  'forge-gate': { tool: name, result: GateResult },
  'forge-accepted': { tool: name, digest, tier: Tier },
  'forge-refused': { tool: name, gate, code: Code, message: note() },
  promotion: { tool: name, digest, from: Tier, to: Tier, state: name, note: note() },
  demotion: { tool: name, digest, reason: note() },
  /** One run of a hook. `directive` is what it said, `code` why it failed. */
  hook: {
    tool: name,
    event: line(32),
    directive: Type.Optional(line(16)),
    code: Type.Optional(Code),
    milliseconds: Type.Number({ minimum: 0 }),
  },
  /** A run of `agent_run`. Its text and its end have their own kinds, so that no reader takes them for those of the message. */
  'agent-start': { name: note(), model: line(512) },
  'agent-message': { text: note() },
  /** A model call of the run that failed and is repeated, or a summary that failed. */
  'agent-error': { code: Code, message: note(), attempt: count },
  'agent-complete': {
    ok: Type.Boolean(),
    code: Type.Optional(Code),
    turns: count,
    toolCalls: count,
    inputTokens: count,
    outputTokens: count,
    summary: note(),
  },
  'approval-requested': { request: name, tool: name, risk: name, reason: note() },
  'approval-decided': { request: name, decision: name, by: name },
  'turn-parked': { requests: Type.Array(name, { minItems: 1, maxItems: 100 }) },
  warning: { code: line(128), message: note() },
  error: { code: Code, message: note(), attempt: count },
  'turn-end': { turn: count, inputTokens: count, outputTokens: count },
  'session-end': {
    turns: count,
    toolCalls: count,
    inputTokens: count,
    outputTokens: count,
    reply: note(),
    format: Type.Optional(Type.Enum(['json'])),
  },
} satisfies Record<string, TProperties>;

/** The time and origin of an event, which the owner of the sink adds. The gateway overwrites `agent` with the agent of the pod. */
const STAMP = { time: note(40), agent: name, session: SessionId, rootMessage: note(128) };

type Members = typeof EVENT_MEMBERS;

/** An event of an agent, for the transcript, the trace and NATS. One union, so that no sink misses a kind. */
export type AgentEvent = {
  [Kind in keyof Members]: { type: Kind } & Static<TObject<Members[Kind]>> & Static<TObject<typeof RUN>>;
}[keyof Members];

export type StampedEvent = AgentEvent & Static<TObject<typeof STAMP>>;

/** `StampedEvent`, kind by kind and without further members: clients that follow a session receive no other shape. */
export const StampedEvent = Type.Unsafe<StampedEvent>(
  Type.Union(
    Object.entries(EVENT_MEMBERS).map(([kind, members]) =>
      Type.Object({ type: Type.Literal(kind), ...members, ...RUN, ...STAMP }, closed),
    ),
    { description: 'An event of a session.' },
  ),
);
