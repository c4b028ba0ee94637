import { Type } from 'typebox';
import { Tier } from '../../api/v1alpha1/common.ts';
import { GATES } from '../../tools/events.ts';
import { Code, closed, SessionId, text } from '../http/schemas.ts';

const MAX_TEXT = 100_000;
const note = (maxLength = MAX_TEXT) => text(maxLength, 'Text.', 0);
// Generous: models choose tool names and call ids, and one invalid member refuses the whole batch.
const name = note(4_096);
const digest = note(128);
const count = Type.Integer({ minimum: 0 });

const Gate = Type.Enum([...GATES]);

/** Members of every event. The gateway overwrites `agent` with the agent of the pod. */
const stamp = { time: note(40), agent: name, session: SessionId, rootMessage: note(128) };

/** `StampedEvent`, member by member: clients that follow a session receive no other shape. */
export const ReportedEvent = Type.Union(
  [
    Type.Object({ type: Type.Literal('session-start'), model: name, policy: name, level: name, ...stamp }, closed),
    Type.Object({ type: Type.Literal('message-received'), text: note(), ...stamp }, closed),
    Type.Object({ type: Type.Literal('turn-start'), turn: count, ...stamp }, closed),
    Type.Object({ type: Type.Literal('message'), text: note(), delta: Type.Boolean(), ...stamp }, closed),
    Type.Object({ type: Type.Literal('reasoning'), text: note(), ...stamp }, closed),
    Type.Object({ type: Type.Literal('tool-call'), id: name, tool: name, input: Type.Unknown(), ...stamp }, closed),
    Type.Object(
      {
        type: Type.Literal('tool-result'),
        id: name,
        tool: name,
        ok: Type.Boolean(),
        code: Type.Optional(Code),
        summary: note(),
        milliseconds: Type.Number({ minimum: 0 }),
        ...stamp,
      },
      closed,
    ),
    Type.Object({ type: Type.Literal('forge-start'), tool: name, mode: name, description: note(), ...stamp }, closed),
    Type.Object(
      {
        type: Type.Literal('forge-gate'),
        tool: name,
        result: Type.Object({ gate: Gate, passed: Type.Boolean(), note: note() }, closed),
        ...stamp,
      },
      closed,
    ),
    Type.Object({ type: Type.Literal('forge-accepted'), tool: name, digest, tier: Tier, ...stamp }, closed),
    Type.Object(
      { type: Type.Literal('forge-refused'), tool: name, gate: Gate, code: Code, message: note(), ...stamp },
      closed,
    ),
    Type.Object(
      {
        type: Type.Literal('promotion'),
        tool: name,
        digest,
        from: Tier,
        to: Tier,
        state: name,
        note: note(),
        ...stamp,
      },
      closed,
    ),
    Type.Object({ type: Type.Literal('demotion'), tool: name, digest, reason: note(), ...stamp }, closed),
    Type.Object(
      { type: Type.Literal('approval-requested'), request: name, tool: name, risk: name, reason: note(), ...stamp },
      closed,
    ),
    Type.Object({ type: Type.Literal('approval-decided'), request: name, decision: name, by: name, ...stamp }, closed),
    Type.Object({ type: Type.Literal('warning'), code: name, message: note(), ...stamp }, closed),
    Type.Object({ type: Type.Literal('error'), code: Code, message: note(), attempt: count, ...stamp }, closed),
    Type.Object(
      { type: Type.Literal('turn-end'), turn: count, inputTokens: count, outputTokens: count, ...stamp },
      closed,
    ),
    Type.Object(
      {
        type: Type.Literal('session-end'),
        turns: count,
        toolCalls: count,
        inputTokens: count,
        outputTokens: count,
        reply: note(),
        ...stamp,
      },
      closed,
    ),
  ],
  { description: 'An event of a session.' },
);

export const ReportedAuditRecord = Type.Object(
  {
    action: Type.String({ pattern: '^[a-z][a-z0-9.-]{0,63}$' }),
    actor: name,
    evidence: Type.Enum(['observed', 'reported']),
    subject: note(512),
    facts: Type.Record(Type.String({ maxLength: 128 }), Type.Unknown(), { maxProperties: 64 }),
  },
  { ...closed, description: 'An audit record; always stored as reported by the pod.' },
);

export const ReportedToolUse = Type.Object(
  {
    agent: name,
    namespace: name,
    session: SessionId,
    digest: Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }),
    evidence: Type.Enum(['observed', 'reported']),
    rootMessage: note(128),
    input: Type.Unknown(),
    succeeded: Type.Boolean(),
    milliseconds: Type.Number({ minimum: 0 }),
    time: note(40),
  },
  { ...closed, description: 'A use of a forged tool; always stored as reported by the pod.' },
);
