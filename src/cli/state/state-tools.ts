import { type Json, type JsonObject, member, textAt } from '../../lib/json.ts';
import type { RecordStore, StoredRecord } from '../../lib/record-store.ts';

/** A forged tool of any tier in the state folder. */
export interface StateTool extends StoredRecord {
  /** Collection of its evidence. */
  evidence: string;
}

/** Tools of tier Agent and Shared, then those of each session. */
export async function listStateTools(records: RecordStore): Promise<StateTool[]> {
  const sessions = await records.list('sessions');
  const collections = [
    { tools: 'tools', evidence: 'evidence' },
    ...sessions.map(({ name }) => ({ tools: `sessions/${name}/tools`, evidence: `sessions/${name}/evidence` })),
  ];
  const found = await Promise.all(
    collections.map(async ({ tools, evidence }) =>
      (await records.list(tools)).map((record) => ({ ...record, evidence })),
    ),
  );
  return found.flat();
}

/** Does `target` identify this tool: as object name, digest, or the name that models use? */
export function matchesTool({ name, value }: StoredRecord, target: string): boolean {
  return [name, textAt(value, ['spec', 'digest']), toolName(value)].includes(target);
}

export function toolName(value: Json): string {
  return textAt(value, ['spec', 'artifact', 'name']);
}

/** Everything a reviewer needs about one tool: the object, its evidence, its use statistics, its examination, and what its promotions wait for. */
export async function toolWithEvidence(records: RecordStore, tool: StateTool): Promise<JsonObject> {
  const evidence = await records.get(tool.evidence, tool.name);
  const namespace = textAt(tool.value, ['metadata', 'namespace'], 'default');
  const hex = textAt(tool.value, ['spec', 'digest']).slice('sha256:'.length);
  const uses = hex === '' ? undefined : await records.get(`uses/${namespace}`, hex);
  const examination = hex === '' ? undefined : await records.get(`examinations/${namespace}`, hex);
  const promotions = await promotionsOf(records, textAt(tool.value, ['spec', 'digest']));
  return {
    object: tool.value,
    ...(evidence === undefined ? {} : { evidence }),
    ...(uses === undefined ? {} : { uses: summaryOf(uses) }),
    ...(examination === undefined ? {} : { examination: findingsOf(examination) }),
    ...(promotions.length === 0 ? {} : { promotions }),
  };
}

/** The report of an examination: the checks without a disagreement by name only. */
function findingsOf(report: Json): JsonObject {
  const checks = member(report, 'checks');
  const all = Array.isArray(checks) ? checks : [];
  const hasFindings = (check: Json): boolean => member(check, 'disagreements') !== 0;
  return {
    inputs: member(report, 'inputs') ?? 0,
    claims: member(report, 'claims') ?? [],
    passed: all.filter((check) => !hasFindings(check)).map((check) => textAt(check, ['check'])),
    findings: all.filter(hasFindings),
    testers: member(report, 'testers') ?? [],
  };
}

/** The promotions of a tool that are stopped, and what each of them waits for. */
async function promotionsOf(records: RecordStore, digest: string): Promise<JsonObject[]> {
  const all = await records.list('promotions');
  return all
    .filter(({ value }) => digest !== '' && textAt(value, ['digest']) === digest)
    .map(({ value }) => {
      const [to, state] = [textAt(value, ['to']), textAt(value, ['state'])];
      return { to, state, waitsFor: state === 'AwaitingApproval' ? approvalStep(value) : retryStep(value) };
    });
}

function approvalStep(promotion: Json): string {
  const request = textAt(promotion, ['request']);
  return `an approver: temper approve ${request} --reason …, or temper deny ${request} --reason …`;
}

function retryStep(promotion: Json): string {
  return `valid uses after ${textAt(promotion, ['coolDownUntil'], 'the cool-down')}; rejected: ${textAt(promotion, ['reason'], 'no reason is stored')}`;
}

function summaryOf(uses: Json): JsonObject {
  const [total, successes, average] = ['totalUses', 'successes', 'averageMilliseconds'].map(
    (key) => member(uses, key) ?? 0,
  );
  const [inputs, roots] = ['inputs', 'roots'].map((key) => member(uses, key));
  return {
    total: total ?? 0,
    successes: successes ?? 0,
    distinctInputs: Array.isArray(inputs) ? inputs.length : 0,
    rootMessages: Array.isArray(roots) ? roots.length : 0,
    averageMilliseconds: average ?? 0,
    lastUsedAt: textAt(uses, ['lastUsedAt'], 'never'),
  };
}
