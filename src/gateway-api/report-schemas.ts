import { type Static, Type } from 'typebox';
import { closed } from '../api/v1alpha1/common.ts';
import type { AuditRecord } from '../audit/port.ts';
import type { Digest } from '../lib/canonical.ts';
import type { ReportedSpan } from '../telemetry/reported-span.ts';
import { MAX_COUNTED_CALLS, type ToolCalls } from '../tempering/hygiene/tool-calls.ts';
import { MAX_TASK_TOOLS } from '../tempering/hygiene/tool-task.ts';
import type { ToolUse } from '../tempering/types.ts';
import { StampedEvent } from '../tools/event-schema/agent-event.ts';
import { AnyJson, SessionId, text } from '../tools/event-schema/parts.ts';
import { ReportedRecording } from '../tools/recording/recording-schema.ts';
import { AnswerSignature, DeliveryToken, describes, DigestText } from './schema-parts.ts';

const note = (maxLength: number) => text(maxLength, 'Text.', 0);
const name = note(4_096);
const evidence = Type.Enum(['observed', 'reported']);
const MAX_ITEMS = 500;
const MAX_SIGNATURES = 256;

const ReportedAuditRecord = describes<AuditRecord>()(
  Type.Object(
    {
      action: Type.String({ pattern: '^[a-z][a-z0-9.-]{0,63}$' }),
      actor: name,
      evidence,
      subject: note(512),
      facts: Type.Record(Type.String({ maxLength: 128 }), AnyJson, { maxProperties: 64 }),
    },
    { ...closed, description: 'An audit record; always stored as reported by the pod.' },
  ),
);

const ReportedToolUse = describes<ToolUse>()(
  Type.Object(
    {
      agent: name,
      namespace: name,
      session: SessionId,
      digest: Type.Unsafe<Digest>(DigestText),
      evidence,
      rootMessage: note(128),
      input: AnyJson,
      output: Type.Optional(Type.Unsafe<Digest>(DigestText)),
      recording: Type.Optional(ReportedRecording),
      succeeded: Type.Boolean(),
      milliseconds: Type.Number({ minimum: 0 }),
      time: note(40),
    },
    { ...closed, description: 'A use of a forged tool; always stored as reported by the pod.' },
  ),
);

const ToolCallCounts = describes<ToolCalls>()(
  Type.Object(
    {
      digest: Type.Unsafe<Digest>(DigestText),
      calls: Type.Integer({ minimum: 1, maximum: MAX_COUNTED_CALLS }),
      failures: Type.Integer({ minimum: 0, maximum: MAX_COUNTED_CALLS }),
    },
    { ...closed, description: 'Calls of a forged tool by the agent itself; the word of the pod.' },
  ),
);

export const ToolCallReport = Type.Array(ToolCallCounts, {
  maxItems: MAX_TASK_TOOLS,
  description:
    'The forged tools that the agent has called for the delivery so far. They count for this agent alone, and later ones replace them.',
});

export const PodReports = Type.Object(
  {
    deliveryToken: Type.Optional(DeliveryToken),
    events: Type.Optional(Type.Array(StampedEvent, { maxItems: MAX_ITEMS })),
    audit: Type.Optional(Type.Array(ReportedAuditRecord, { maxItems: MAX_ITEMS })),
    uses: Type.Optional(Type.Array(ReportedToolUse, { maxItems: MAX_ITEMS })),
    answerSignatures: Type.Optional(Type.Array(AnswerSignature, { maxItems: MAX_SIGNATURES })),
    toolCalls: Type.Optional(ToolCallReport),
  },
  {
    ...closed,
    description:
      "The pod's reports about itself: stored as reported evidence, never as observed. Events go to clients that follow the session. Recorded answers with a signature of this installation are observed. Uses count for the session and the root message of the delivery token; without a token they are only recorded.",
  },
);
export type PodReports = Static<typeof PodReports>;

const MAX_SPANS = 200;
const Instant = Type.Tuple([
  Type.Integer({ minimum: 0, maximum: 10_000_000_000 }),
  Type.Integer({ minimum: 0, maximum: 999_999_999 }),
]);
const hexadecimal = (digits: number) => Type.String({ pattern: `^[0-9a-f]{${digits}}$` });
const Span = describes<ReportedSpan>()(
  Type.Object(
    {
      traceId: hexadecimal(32),
      spanId: hexadecimal(16),
      parentSpanId: Type.Optional(hexadecimal(16)),
      name: Type.String({ maxLength: 512 }),
      kind: Type.Enum(['INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER']),
      start: Instant,
      end: Instant,
      failed: Type.Boolean(),
      attributes: Type.Record(
        Type.String({ maxLength: 128 }),
        Type.Union([
          Type.String({ maxLength: 4_096 }),
          Type.Number(),
          Type.Boolean(),
          Type.Array(Type.String({ maxLength: 256 }), { maxItems: 64 }),
        ]),
        { maxProperties: 64 },
      ),
    },
    { ...closed, description: 'A span that the pod recorded.' },
  ),
);

export const TracesRequest = Type.Object(
  { deliveryToken: DeliveryToken, spans: Type.Array(Span, { maxItems: MAX_SPANS }) },
  {
    ...closed,
    description:
      'The spans the pod recorded for one message, when the `traceparent` of its delivery is sampled. Calls with a delivery token state their parent span in the header `traceparent`.',
  },
);
export type TracesRequest = Static<typeof TracesRequest>;
