import { type Static, Type } from 'typebox';
import { closed, Tier } from '../api/v1alpha1/common.ts';
import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { CAPABILITY_KINDS } from '../discovery/entry.ts';
import type { DiscoveryQuery, DiscoveryResult } from '../discovery/port.ts';
import type { AcceptedTool, ForgeEvidence, JudgeVerdict, RefusedTool, ToolCandidate } from '../forge/types.ts';
import type { Digest } from '../lib/canonical.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { JsonObject } from '../lib/json.ts';
import type { RegisteredTool as StoredTool } from '../tempering/types.ts';
import { AnyJson } from '../tools/event-schema/parts.ts';
import type { Gate, GateResult } from '../tools/events.ts';
import { AnyObject, DeliveryToken, describes, DigestText, Timestamp } from './schema-parts.ts';

const text = (maxLength: number) => Type.String({ maxLength });
const amount = Type.Number({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const ToolDigest = Type.Unsafe<Digest>(DigestText);

// Form only: a pod of another version may know further gates, codes and classes. Handlers replace what they do not know.
const GateName = Type.Unsafe<Gate>({ type: 'string', pattern: '^[a-z-]{1,32}$' });
const CodeText = Type.Unsafe<ErrorCode>({ type: 'string', maxLength: 64 });
const ClassText = Type.Unsafe<RefusedTool['class']>({ type: 'string', maxLength: 64 });

const Gates = Type.Array(Type.Object({ gate: GateName, passed: Type.Boolean(), note: text(4_096) }), { maxItems: 32 });
const ReadonlyGates = Type.Unsafe<readonly GateResult[]>(Gates);
const Run = Type.Object({
  case: Type.Integer({ minimum: 0, maximum: 10_000 }),
  run: Type.Union([Type.Literal(1), Type.Literal(2)]),
  passed: Type.Boolean(),
  got: Type.Optional(AnyJson),
  failure: Type.Optional(Type.Object({ code: CodeText, message: text(8_192) })),
  milliseconds: amount,
  heapBytes: amount,
});
const Evidence = describes<ForgeEvidence>()(
  Type.Object({
    tests: Type.Array(Run, { maxItems: 1_000 }),
    milliseconds: amount,
    heapBytes: amount,
    warnings: Type.Array(text(2_048), { maxItems: 100 }),
  }),
);
const Verdict = describes<JudgeVerdict>()(
  Type.Object({
    approved: Type.Boolean(),
    confidence: Type.Number({ minimum: 0, maximum: 1 }),
    code: Type.Optional(Type.Enum(['TEMPER_JUDGE_UNAVAILABLE', 'TEMPER_JUDGE_REFUSED', 'TEMPER_JUDGE_SUSPENDED'])),
    reasoning: Type.String(),
    model: Type.String(),
    promptDigest: Type.String(),
    templateDigest: Type.Optional(Type.String()),
    citedLines: Type.Optional(Type.Array(Type.Integer())),
    judgeIsAuthor: Type.Optional(Type.Literal(true)),
  }),
);
const Artifact = Type.Unsafe<ToolArtifact>({ type: 'object', description: '`spec.artifact` of an EmergentTool.' });

/** Ignored: the gateway takes the author's model from the agent. */
const authorModel = Type.Optional(text(256));

export const ReviewRequest = Type.Object(
  {
    deliveryToken: DeliveryToken,
    authorModel,
    // The review parses the artifact itself.
    candidate: describes<Omit<ToolCandidate, 'artifact'> & { artifact: JsonObject }>()(
      Type.Object({ artifact: AnyObject, digest: ToolDigest, evidence: Evidence, gates: Type.Optional(ReadonlyGates) }),
    ),
  },
  { ...closed, description: 'A tool that passed the gates of the pod.' },
);
export type ReviewRequest = Static<typeof ReviewRequest>;

const Refusal = {
  name: text(256),
  digest: Type.Optional(ToolDigest),
  gate: GateName,
  code: CodeText,
  class: ClassText,
  message: text(65_536),
  details: AnyObject,
  gates: Gates,
};

/** Without the pod's evidence, which is not stored. */
export const RejectedToolRequest = Type.Object(
  {
    deliveryToken: DeliveryToken,
    authorModel,
    refused: describes<Omit<RefusedTool, 'accepted' | 'evidence' | 'verdict'>>()(Type.Object(Refusal)),
  },
  { ...closed, description: 'A tool that the pod itself refused.' },
);
export type RejectedToolRequest = Static<typeof RejectedToolRequest>;

export const DropToolRequest = Type.Object(
  { deliveryToken: DeliveryToken, digest: ToolDigest },
  { ...closed, description: 'A tool of the session of the delivery that the agent drops.' },
);
export type DropToolRequest = Static<typeof DropToolRequest>;

export const ForgeResult = Type.Union(
  [
    describes<AcceptedTool>()(
      Type.Object({
        accepted: Type.Literal(true),
        artifact: Artifact,
        digest: ToolDigest,
        evidence: Evidence,
        verdict: Type.Optional(Verdict),
        gates: Gates,
      }),
    ),
    describes<RefusedTool>()(
      Type.Object({
        accepted: Type.Literal(false),
        ...Refusal,
        evidence: Type.Optional(Evidence),
        verdict: Type.Optional(Verdict),
      }),
    ),
  ],
  { description: 'The result of a review.' },
);

export const RegisteredTools = Type.Array(
  describes<StoredTool>()(
    Type.Object(
      {
        object: Type.String(),
        artifact: Artifact,
        digest: ToolDigest,
        tier: Tier,
        owner: Type.Object({ agent: Type.String(), namespace: Type.String(), session: Type.String() }, closed),
        contributors: Type.Array(Type.String()),
        verdicts: Type.Array(Verdict),
        authorModel: Type.String(),
        sourceWithheld: Type.Boolean(),
        acceptedAt: Timestamp,
        active: Type.Boolean(),
        inactiveReason: Type.Optional(Type.String()),
      },
      closed,
    ),
  ),
  { description: 'The forged tools of a session.' },
);

export const DiscoveryRequest = describes<DiscoveryQuery & { deliveryToken: string; forMessage?: true }>()(
  Type.Object(
    {
      deliveryToken: DeliveryToken,
      query: Type.String({
        minLength: 1,
        maxLength: 2_048,
        description: 'Search terms, or the beginning of a message.',
      }),
      forMessage: Type.Optional(
        Type.Literal(true, {
          description:
            'The query is a message, and the results are only tools that the agent can call. It is no use of discover_capabilities.',
        }),
      ),
      kind: Type.Optional(Type.String({ minLength: 1, maxLength: 20, description: 'Only this kind.' })),
      category: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'Only this category.' })),
    },
    { ...closed, description: 'A search for capabilities in the session of the delivery.' },
  ),
);
export type DiscoveryRequest = Static<typeof DiscoveryRequest>;

export const DiscoveryResponse = describes<DiscoveryResult>()(
  Type.Object(
    {
      capabilities: Type.Array(
        Type.Object(
          {
            id: Type.String(),
            name: Type.String(),
            displayName: Type.Optional(Type.String({ description: 'For human readers.' })),
            kind: Type.Enum([...CAPABILITY_KINDS]),
            description: Type.String(),
            relevance: Type.Number({ minimum: 0, maximum: 1 }),
            available: Type.Boolean(),
            note: Type.Optional(Type.String({ description: 'Why it is not available.' })),
          },
          closed,
        ),
      ),
      more: Type.Integer({ minimum: 0, description: 'The number of further matches.' }),
    },
    closed,
  ),
);
