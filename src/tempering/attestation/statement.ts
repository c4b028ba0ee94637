import type { ChainedRecord, Checkpoint } from '../../audit/port.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type JsonObject, member } from '../../lib/json.ts';
import { verdictFacts } from '../registry/verdict-facts.ts';
import type { RegisteredTool } from '../types.ts';

const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
const PREDICATE_TYPE = 'https://temper.dev/attestation/tool/v1';
/** The events of a tool's life that an attestation lists; its calls are not among them. */
const LIFE: ReadonlySet<string> = new Set([
  'tool.accepted',
  'tool.promoted',
  'tool.promotion-refused',
  'tool.demoted',
  'approval.decided',
]);
const MAX_RECORDS = 100;

/** What the exporter states about a tool: an in-toto Statement whose subject is the digest of the artifact. */
export function toolStatement(
  tool: RegisteredTool,
  chain: readonly ChainedRecord[],
  head: Checkpoint | undefined,
  time: string,
): JsonObject {
  const { artifact, digest, tier, authorModel, verdicts } = tool;
  const records = chain.filter(({ subject, action }) => subject === digest && LIFE.has(action)).slice(-MAX_RECORDS);
  return statementAbout(artifact.name, digest, {
    time,
    tier,
    authorModel,
    tests: artifact.tests.length,
    verdicts: verdicts.map(verdictFacts),
    provenance: {
      ...(head === undefined ? {} : { head: { seq: head.seq, digest: head.digest } }),
      records: records.map(({ seq, time: at, action, actor, digest: record }) => ({
        seq,
        time: at,
        action,
        actor,
        digest: record,
      })),
    },
  });
}

/** What the operator of a cluster states about a tool in service at tier Shared. */
export interface SharedToolFacts {
  readonly name: string;
  readonly digest: string;
  readonly namespace: string;
  readonly tests: number;
  readonly contributors: readonly string[];
  /** The Approval that counts for it. */
  readonly approval: { readonly name: string; readonly by: string; readonly createdAt: string };
  /** The signed head of the audit stream that covers its approval. */
  readonly head: {
    readonly sequence: number;
    readonly records: number;
    readonly digest: string;
    readonly time: string;
  };
  /** The figures of the re-runs before tier Agent; absent when no record of them is left. */
  readonly verification?: Readonly<Record<string, number>>;
  /** Of the panel before tier Agent. */
  readonly verdicts?: readonly SharedVerdict[];
}

interface SharedVerdict {
  readonly model: string;
  readonly approved: boolean;
  readonly confidencePercent: number;
  readonly promptDigest: string;
  readonly citedLines: readonly number[];
}

/** The statement of the operator of a cluster. Its records are those of the audit stream up to the head. */
export function sharedToolStatement(facts: SharedToolFacts, time: string): JsonObject {
  const { sequence, records, digest, time: signedAt } = facts.head;
  const { verification, verdicts } = facts;
  return statementAbout(facts.name, facts.digest, {
    time,
    tier: 'Shared',
    namespace: facts.namespace,
    tests: facts.tests,
    contributors: [...facts.contributors],
    ...(verification === undefined ? {} : { verification: { ...verification } }),
    ...(verdicts === undefined ? {} : { verdicts: verdicts.map(withoutWords) }),
    approval: { name: facts.approval.name, by: facts.approval.by, createdAt: facts.approval.createdAt },
    provenance: { head: { sequence, records, digest, time: signedAt } },
  });
}

/** The reasoning of a model is no part of a statement: its reader may be another model. */
function withoutWords({ model, approved, confidencePercent, promptDigest, citedLines }: SharedVerdict): JsonObject {
  return { model, approved, confidence: confidencePercent / 100, promptDigest, citedLines: [...citedLines] };
}

function statementAbout(name: string, digest: string, predicate: JsonObject): JsonObject {
  return {
    _type: STATEMENT_TYPE,
    subject: [{ name, digest: { sha256: hexOf(digest) } }],
    predicateType: PREDICATE_TYPE,
    predicate,
  };
}

/** Throws TEMPER_ATTESTATION_INVALID when the statement is about anything but this digest. */
export function assertStatementAbout(statement: JsonObject, digest: string): void {
  const { _type: type, predicateType, subject } = statement;
  if (type !== STATEMENT_TYPE || predicateType !== PREDICATE_TYPE)
    throw invalid('it is not an in-toto Statement about a tool');
  const [first] = Array.isArray(subject) ? subject : [];
  if (!Array.isArray(subject) || subject.length !== 1 || !isJsonObject(first)) throw invalid('it has not one subject');
  if (member(first['digest'], 'sha256') !== hexOf(digest)) throw invalid(`it is about another tool than ${digest}`);
}

function hexOf(digest: string): string {
  return digest.slice('sha256:'.length);
}

function invalid(problem: string): TemperError {
  return new TemperError(
    'TEMPER_ATTESTATION_INVALID',
    `the attestation does not fit: ${problem}; nothing was imported, obtain the package and its attestation again`,
  );
}
