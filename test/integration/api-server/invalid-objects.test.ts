import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import type { JsonObject } from '../../../src/lib/json.ts';
import { isKnownReason } from '../../../src/operator/conditions.testing.ts';
import { type StoredAgent, type StoredPolicy, TYPES } from '../../../src/operator/kube/types.ts';
import type { ApiResponse } from '../../cluster/api-client.ts';
import { type Draw, seededDraw, oneOf } from '../../support/fuzz/hostile-values.ts';
import { type Mutant, mutate, jsonText } from '../../support/fuzz/mutated-objects.ts';
import { type ApiServerFixture, startApiServerFixture } from '../../support/api-server/api-server-fixture.ts';
import { buildAgent, readyMessage, buildTrustPolicy, readyReason } from '../../support/builders.ts';
import { type RunningOperator, startOperator } from '../../support/operator/start-operator.ts';
import { pollValue } from '../../support/poll.ts';
import { NEVER_ABORTED, NO_METRICS } from '../../support/stubs.ts';

const SAMPLES = new URL('../../../manifests/samples/', import.meta.url);
const KINDS = ['Agent', 'TrustPolicy', 'EmergentTool', 'Capability', 'ApprovalRequest', 'Approval'] as const;
type Kind = (typeof KINDS)[number];
const PLURALS: Readonly<Record<Kind, string>> = {
  Agent: 'agents',
  TrustPolicy: 'trustpolicies',
  EmergentTool: 'emergenttools',
  Capability: 'capabilities',
  ApprovalRequest: 'approvalrequests',
  Approval: 'approvals',
};
/** Of each kind; `make soak` has more. */
const MUTANTS = Number(process.env['MUTANTS'] ?? 400);
const SEED = Number(process.env['SEED'] ?? 20_261_121);
const MAX_IN_FLIGHT = 16;
/** The maximum of objects per namespace, so that effects on neighbours are visible and the namespace stays small. */
const MAX_PER_NAMESPACE = 250;
/** The message of a forged condition. */
const FORGED_MESSAGE = 'as I say';
/** Forged statuses. */
const FORGED: readonly JsonObject[] = [
  {},
  { observedGeneration: 999 },
  {
    observedGeneration: 1,
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        observedGeneration: 1,
        lastTransitionTime: '2026-01-01T00:00:00Z',
        reason: 'Running',
        message: FORGED_MESSAGE,
      },
    ],
  },
  { pod: { name: 'another', uid: '5f0c2a4e-6c43-4f0e-9a53-0d9a3b1f6c11' }, level: 'elevated' },
];

/** One request and its response. */
interface Trial {
  readonly how: string;
  readonly mutant: Mutant;
  readonly answer: ApiResponse;
}

const ALL_SAMPLES = readdirSync(SAMPLES).map(
  (file) => parse(readFileSync(new URL(file, SAMPLES), 'utf8')) as JsonObject,
);

function samplesOf(kind: Kind): JsonObject[] {
  return ALL_SAMPLES.filter((sample) => sample['kind'] === kind);
}

function withName(sample: JsonObject, namespace: string, name: string): JsonObject {
  return { ...sample, metadata: { ...(sample['metadata'] as JsonObject), namespace, name } };
}

/** Removes metadata that only the server writes. */
function withoutRecords(object: JsonObject): JsonObject {
  const { managedFields: _managed, creationTimestamp: _created, ...metadata } = object['metadata'] as JsonObject;
  return { ...object, metadata };
}

function versionOf(object: JsonObject): string {
  return (object['metadata'] as { resourceVersion: string }).resourceVersion;
}

/** For an apply that does not match the schema, the API server responds with status 500 and names the field. */
function isWrongShape({ status, body }: ApiResponse): boolean {
  return status === 500 && /^failed to create typed patch object .*: (errors:\s+)?\.\S/s.test(String(body['message']));
}

/** The message for text that cannot be parsed: it names no field. */
function isUnreadable(message: string): boolean {
  return /cannot unmarshal number \S+ into Go value of type float64|exceeded max depth|^error decoding YAML:/.test(
    message,
  );
}

/** Whether the response points to a field. */
function namesField({ status, body }: ApiResponse): boolean {
  const { causes = [] } = (body['details'] ?? {}) as { causes?: { field?: string }[] };
  if (causes.some(({ field }) => field !== undefined && field !== '')) return true;
  const message = String(body['message'] ?? body['text']);
  if (status === 409) return body['reason'] === 'AlreadyExists' || message.includes('UID in precondition');
  if (status === 413) return /too large/.test(message);
  const fields =
    /\b(spec|metadata|ObjectMeta|status|apiVersion|kind|name|namespace|Kind|API version|Object)\b|unknown field "/;
  return fields.test(message) || isUnreadable(message);
}

describe('invalid objects', () => {
  let apiServer: ApiServerFixture;
  let operator: RunningOperator;
  const counted = new Map<string, number>();
  const depths = new Map<string, number>();
  const inWork = new Map<string, () => number>();

  before(async () => {
    apiServer = await startApiServerFixture();
    const metrics = {
      ...NO_METRICS,
      count: (name: string, labels: Readonly<Record<string, string>>, by = 1) => {
        const key = `${name} ${labels['controller'] ?? ''}`;
        counted.set(key, (counted.get(key) ?? 0) + by);
      },
      gauge: (name: string, labels: Readonly<Record<string, string>>, value: number) => {
        if (name === 'workqueue_depth') depths.set(`${labels['name']} ${labels['priority']}`, value);
      },
      watch: (name: string, labels: Readonly<Record<string, string>>, read: () => number) => {
        if (name === 'workqueue_unfinished_work_seconds') inWork.set(labels['name'] ?? '', read);
      },
    };
    operator = await startOperator(apiServer, undefined, { metrics });
  });

  after(async () => {
    await operator?.stop();
    await apiServer?.[Symbol.asyncDispose]();
  });

  const call = (method: string, path: string, body: string, contentType = 'application/json') =>
    apiServer.plane.admin.call(method, path, { body, contentType });

  /** Sends a mutated object as create, apply, update or status update. */
  const attempt = async (kind: Kind, namespace: string, name: string, draw: Draw): Promise<Trial> => {
    const sample = withName(oneOf(draw, samplesOf(kind)), namespace, name);
    const collection = `/apis/temper.dev/v1alpha1/namespaces/${namespace}/${PLURALS[kind]}`;
    const own = `${collection}/${name}`;
    const strict = draw(4) === 0 ? '' : '?fieldValidation=Strict';
    const send = async (how: string, mutant: Mutant, method: string, path: string, type?: string): Promise<Trial> => {
      return { how, mutant, answer: await call(method, path, mutant.text, type) };
    };
    /** Sends an update and retries with the latest resourceVersion when the operator has written in between. */
    const put = async (how: string, mutant: Mutant, path: string, version: string): Promise<Trial> => {
      const trial = await send(how, mutant, 'PUT', path);
      if (!/has been modified/.test(String(trial.answer.body['message']))) return trial;
      const latest = versionOf((await apiServer.plane.admin.call('GET', own)).body as JsonObject);
      return put(how, { ...mutant, text: mutant.text.replace(`"${version}"`, `"${latest}"`) }, path, latest);
    };
    const how = draw(20);
    if (how < 13) return send('create', mutate(sample, draw), 'POST', `${collection}${strict}`);
    if (how < 15) {
      return send('apply', mutate(sample, draw), 'PATCH', `${own}?fieldManager=test`, 'application/apply-patch+yaml');
    }
    const made = await call('POST', collection, jsonText(sample));
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const stored = withoutRecords(made.body as JsonObject);
    const version = versionOf(stored);
    if (how < 18) return put('replace', mutate(stored, draw), `${own}${strict}`, version);
    const forged = { ...stored, status: oneOf(draw, FORGED) };
    return put('status', mutate(forged, draw, ['status']), `${own}/status${strict}`, version);
  };

  /** All data needed to reproduce the failure. */
  const describeProblem = (kind: Kind, index: number, { how, mutant, answer }: Trial, what: string): string => {
    const seen = { seed: SEED, kind, index, how, changes: mutant.changes, answer };
    return `${what}\n${JSON.stringify(seen, null, 1).slice(0, 4_000)}\n${mutant.text.slice(0, 4_000)}`;
  };

  for (const [position, kind] of KINDS.entries()) {
    it(`every mutated ${kind} is rejected with its field, or stored and reconciled`, async (t) => {
      const started = performance.now();
      const namespaces = Array.from(
        { length: Math.ceil(MUTANTS / MAX_PER_NAMESPACE) },
        (_, at) => `${kind.toLowerCase()}-${at}`,
      );
      for (const namespace of namespaces) {
        await apiServer.createNamespace(namespace);
        const quotas = { agents: 60 };
        for (const name of ['standard', 'minimal'])
          await apiServer.apply(buildTrustPolicy(namespace, { quotas }, name));
      }
      const tally = new Map<string, number>();
      const problems: string[] = [];
      let next = 0;
      const worker = async () => {
        for (let index = next++; index < MUTANTS; index = next++) {
          const draw = seededDraw(SEED + position * 1_000_003 + index);
          const namespace = namespaces[Math.floor(index / MAX_PER_NAMESPACE)] ?? '';
          const trial = await attempt(kind, namespace, `mutant-${index}`, draw);
          const { status } = trial.answer;
          if ((status >= 500 && !isWrongShape(trial.answer)) || status < 200)
            problems.push(describeProblem(kind, index, trial, 'the server failed'));
          if (status >= 400 && !namesField(trial.answer))
            problems.push(describeProblem(kind, index, trial, 'the response names no field'));
          const ending = status < 300 ? 'stored' : 'rejected';
          if (kind === 'TrustPolicy' && ending === 'stored') await createAgentUnder(trial.answer, namespace, index);
          tally.set(`${trial.how} ${ending}`, (tally.get(`${trial.how} ${ending}`) ?? 0) + 1);
        }
      };
      await Promise.all(Array.from({ length: MAX_IN_FLIGHT }, worker));
      assert.equal(problems.length, 0, `${problems.length} problems:\n${problems.slice(0, 5).join('\n\n')}`);
      const sent = performance.now();
      for (const namespace of namespaces) {
        if (kind === 'TrustPolicy') await waitUntilReconciled(kind, namespace);
        if (kind === 'Agent' || kind === 'TrustPolicy') await waitUntilReconciled('Agent', namespace);
      }
      const seconds = (from: number, to: number) => `${((to - from) / 1_000).toFixed(1)} s`;
      t.diagnostic(
        `${JSON.stringify(Object.fromEntries(tally))} sent in ${seconds(started, sent)}, reconciled ${seconds(sent, performance.now())} later`,
      );
      const ends = [...tally.keys()];
      assert.ok(ends.includes('create stored') && ends.includes('create rejected'), ends.join());
    });
  }

  /** Creates an agent under the policy, so that the operator evaluates it. */
  const createAgentUnder = async ({ body }: ApiResponse, namespace: string, index: number) => {
    const { name } = body['metadata'] as { name: string };
    await apiServer.apply(buildAgent(namespace, `under-${index}`, { trustPolicyRef: { name } }));
  };

  /** Waits until every object of the namespace has a Ready condition by the operator for its current generation. */
  const waitUntilReconciled = (kind: 'Agent' | 'TrustPolicy', namespace: string) => {
    const type = kind === 'Agent' ? TYPES.agents : TYPES.trustPolicies;
    const isReconciled = ({ metadata, status }: StoredAgent | StoredPolicy) => {
      const ready = status?.conditions?.find((condition) => condition.type === 'Ready');
      const isCurrent = ready?.observedGeneration === metadata.generation && ready.message !== FORGED_MESSAGE;
      return metadata.deletionTimestamp !== undefined || (isCurrent && isKnownReason(kind, 'Ready', ready.reason));
    };
    return pollValue(
      `a condition for every ${kind} of ${namespace}`,
      async () => {
        const all = await apiServer.client.list<StoredAgent | StoredPolicy>(type, { namespace }, NEVER_ABORTED);
        return all.filter((object) => !isReconciled(object));
      },
      (waiting) => waiting.length === 0,
    );
  };

  it('an object with an unreadable number does not stop its neighbours', async () => {
    const memory = '999999999999Ti';
    await apiServer.createNamespace('numbers');
    await apiServer.apply(buildTrustPolicy('numbers'));
    await apiServer.apply(buildTrustPolicy('numbers', { quotas: { memory } }, 'unreadable'));
    await apiServer.apply(buildAgent('numbers', 'under-it', { trustPolicyRef: { name: 'unreadable' } }));
    await apiServer.apply(buildAgent('numbers', 'itself', { sandbox: { resources: { memory } } }));
    await apiServer.apply(buildAgent('numbers', 'neighbour'));
    await apiServer.waitForAgent('numbers', 'neighbour', 'runs', (agent) => readyReason(agent) === 'Running');
    for (const [name, field] of [
      ['under-it', 'TrustPolicy "unreadable" cannot be used: spec.quotas.memory'],
      ['itself', 'spec.sandbox.resources.memory'],
    ] as const) {
      const agent = await apiServer.waitForAgent(
        'numbers',
        name,
        'is reconciled',
        (found) => readyReason(found) === 'InvalidSpec',
      );
      assert.ok(readyMessage(agent).startsWith(`${field}: "${memory}" is not a number of bytes`));
    }
  });

  it('the operator has empty queues and no errors afterwards', async () => {
    const idle = () => ({
      queued: [...depths].filter(([, depth]) => depth > 0),
      working: [...inWork].filter(([, read]) => read() > 0).map(([name]) => name),
    });
    await pollValue(
      'empty queues',
      () => Promise.resolve(idle()),
      ({ queued, working }) => queued.length === 0 && working.length === 0,
    );
    const failures = [...counted].filter(([name, count]) => /errors|panics|timeouts/.test(name) && count > 0);
    assert.deepEqual(failures, []);
    assert.deepEqual(Object.keys(Object.prototype), []);
    assert.equal(Reflect.get({}, 'polluted'), undefined);
  });

  it('a valid agent becomes Ready afterwards', async () => {
    await apiServer.createNamespace('good');
    await apiServer.apply(buildTrustPolicy('good'));
    await apiServer.apply(buildAgent('good', 'analyst'));
    await apiServer.waitForAgent('good', 'analyst', 'runs', (agent) => readyReason(agent) === 'Running');
  });
});
