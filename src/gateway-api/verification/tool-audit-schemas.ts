import { type Static, Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import type { Digest } from '../../lib/canonical.ts';
import { type AuditedRun, type AuditedTask, MAX_AUDIT_TASKS } from '../../tool-audit/report.ts';
import { Assignment } from '../polls/assignment-schema.ts';
import { StreamRequest } from '../model-schemas.ts';
import { describes, DigestText, Timestamp } from '../schema-parts.ts';
import { RegisteredTools } from '../tool-schemas.ts';
import { MAX_ROUNDS } from './verification-limits.ts';

const MAX_TASK_CHARACTERS = 4_000;
const MAX_COUNT = 1_000_000_000;

const count = Type.Integer({ minimum: 0, maximum: MAX_COUNT });
const Attempt = Type.String({ pattern: '^[A-Za-z0-9_-]{1,64}$', description: 'The audit that the work is for.' });
const Round = Type.Integer({ minimum: 0, maximum: MAX_ROUNDS, description: 'One session of a fresh agent.' });
const Task = Type.String({ minLength: 1, maxLength: MAX_TASK_CHARACTERS, description: 'The message to the agent.' });
const ToolDigest = Type.Unsafe<Digest>(DigestText);

/** What the operator stores for a verifier pod; the gateway makes `ToolAuditWork` of it. */
export const ToolAuditOrder = Type.Object(
  {
    attempt: Attempt,
    round: Round,
    audit: Type.Object({
      agentUid: Type.String(),
      digest: ToolDigest,
      task: Task,
      withTool: Type.Boolean(),
      maxTokens: Type.Integer({ minimum: 1 }),
    }),
  },
  closed,
);
export type ToolAuditOrder = Static<typeof ToolAuditOrder>;

export const ToolAuditWork = Type.Object(
  {
    attempt: Attempt,
    round: Round,
    audit: Type.Object(
      {
        digest: { ...ToolDigest, description: 'The audited tool, whose calls are counted.' },
        task: Task,
        agent: Type.Omit(Assignment, ['version', 'tools', 'suspended']),
        tools: RegisteredTools,
      },
      closed,
    ),
  },
  { ...closed, description: 'One session of a fresh agent in a verifier pod, for an audit of a tool.' },
);
export type ToolAuditWork = Static<typeof ToolAuditWork>;

const Run = describes<AuditedRun>()(
  Type.Object(
    {
      outcome: Type.String({ pattern: '^[A-Za-z_]{1,64}$', description: 'A finish reason, or the code of an error.' }),
      uses: count,
      toolCalls: count,
      turns: count,
      tokens: count,
    },
    closed,
  ),
);

export const ToolAuditResult = Type.Object(
  { attempt: Attempt, round: Round, model: Type.String({ minLength: 1, maxLength: 256 }), run: Run },
  { ...closed, description: 'How one session of a fresh agent ended.' },
);
export type ToolAuditResult = Static<typeof ToolAuditResult>;

export const ToolAuditModelCall = Type.Object(
  { round: Round, request: StreamRequest.properties.request },
  {
    ...closed,
    description:
      'A model call of a fresh agent. The audit that the pod was assigned determines the accounts it is charged to, and its part of the budget.',
  },
);
export type ToolAuditModelCall = Static<typeof ToolAuditModelCall>;

export const ToolAuditRequest = Type.Object(
  {
    tool: Type.String({ minLength: 1, maxLength: 253, description: 'The name that models use, or a digest.' }),
    tasks: Type.Array(Task, { minItems: 1, maxItems: MAX_AUDIT_TASKS }),
    maxTokens: Type.Integer({ minimum: 1, maximum: 10_000_000, description: 'Of all sessions together.' }),
  },
  closed,
);
export type ToolAuditRequest = Static<typeof ToolAuditRequest>;

export const ToolAuditState = Type.Object(
  {
    id: Attempt,
    tool: Type.String(),
    digest: ToolDigest,
    agent: Type.String(),
    state: Type.Enum(['Requested', 'Running', 'Completed', 'Failed']),
    requestedAt: Timestamp,
    endedAt: Type.Optional(Timestamp),
    model: Type.Optional(Type.String()),
    sessions: Type.Integer({ minimum: 0, description: 'All sessions of the audit: two for each task.' }),
    runs: Type.Array(Run, {
      description: 'The sessions that have ended, in order: each task with the tool, then without.',
    }),
    evidence: Type.Optional(Type.Enum(['Compared', 'NeverCalled'])),
    tasks: Type.Array(
      describes<AuditedTask>()(Type.Object({ task: Type.String(), withTool: Run, withoutTool: Run }, closed)),
      { description: 'The tasks of which both sessions have ended.' },
    ),
    problem: Type.Optional(Type.String({ description: 'Why it failed, and the next step.' })),
  },
  { ...closed, description: 'An audit of a tool by fresh agents. It decides nothing.' },
);
export type ToolAuditState = Static<typeof ToolAuditState>;

export const ToolAuditQuery = Type.Object(
  {
    wait: Type.Optional(Type.Integer({ minimum: 0, maximum: 30, description: 'Seconds to wait for further runs.' })),
    runs: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 2 * MAX_AUDIT_TASKS, description: 'The runs that the client has.' }),
    ),
  },
  closed,
);
