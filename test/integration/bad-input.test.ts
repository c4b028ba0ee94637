import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import type { JsonObject } from '../../src/lib/json.ts';
import { isKnownReason } from '../../src/operator/conditions.ts';
import { type StoredAgent, type StoredPolicy, TYPES } from '../../src/operator/kube-types.ts';
import type { ApiAnswer } from '../cluster/api-client.ts';
import { type Draw, drawsOf, oneOf } from './hostile-values.ts';
import { type Mutant, mutantOf, written } from './mutated-objects.ts';
import {
  NO_METRICS,
  type Running,
  type World,
  agentOf,
  eventually,
  messageOfReady,
  policyOf,
  readyReason,
  startOperator,
  startWorld,
} from './operator-world.ts';

const SAMPLES = new URL('../../manifests/samples/', import.meta.url);
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
const MUTANTS = Number(process.env['MUTANTS'] ?? 2_000);
const SEED = Number(process.env['SEED'] ?? 20_261_121);
const IN_FLIGHT = 16;
/** Objects a namespace holds at most: what one of them breaks for its neighbours is seen, and stays small. */
const PER_NAMESPACE = 250;
const never = new AbortController().signal;
/** A message that only a liar writes. */
const CLAIMED = 'as I say';
/** What a status may be made to claim. */
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
        message: CLAIMED,
      },
    ],
  },
  { pod: { name: 'another', uid: '5f0c2a4e-6c43-4f0e-9a53-0d9a3b1f6c11' }, level: 'elevated' },
];

/** What was asked of the server, and what it said. */
interface Trial {
  readonly how: string;
  readonly mutant: Mutant;
  readonly answer: ApiAnswer;
}

const ALL_SAMPLES = readdirSync(SAMPLES).map(
  (file) => parse(readFileSync(new URL(file, SAMPLES), 'utf8')) as JsonObject,
);

function samplesOf(kind: Kind): JsonObject[] {
  return ALL_SAMPLES.filter((sample) => sample['kind'] === kind);
}

function placed(sample: JsonObject, namespace: string, name: string): JsonObject {
  return { ...sample, metadata: { ...(sample['metadata'] as JsonObject), namespace, name } };
}

/** Without what only the server writes. */
function withoutRecords(object: JsonObject): JsonObject {
  const { managedFields: _managed, creationTimestamp: _created, ...metadata } = object['metadata'] as JsonObject;
  return { ...object, metadata };
}

function versionOf(object: JsonObject): string {
  return (object['metadata'] as { resourceVersion: string }).resourceVersion;
}

/** An apply of what does not fit the schema is a failure of the server to an API server; it names the field. */
function isWrongShape({ status, body }: ApiAnswer): boolean {
  return status === 500 && /^failed to create typed patch object .*: (errors:\s+)?\.\S/s.test(String(body['message']));
}

/** What cannot even be read has no fields: the text itself is named. */
function isUnreadable(message: string): boolean {
  return /cannot unmarshal number \S+ into Go value of type float64|exceeded max depth|^error decoding YAML:/.test(
    message,
  );
}

/** Who is told this knows where to look. */
function namesField({ status, body }: ApiAnswer): boolean {
  const { causes = [] } = (body['details'] ?? {}) as { causes?: { field?: string }[] };
  if (causes.some(({ field }) => field !== undefined && field !== '')) return true;
  const message = String(body['message'] ?? body['text']);
  if (status === 409) return body['reason'] === 'AlreadyExists' || message.includes('UID in precondition');
  if (status === 413) return /too large/.test(message);
  const fields =
    /\b(spec|metadata|ObjectMeta|status|apiVersion|kind|name|namespace|Kind|API version|Object)\b|unknown field "/;
  return fields.test(message) || isUnreadable(message);
}

describe('objects that somebody got wrong', () => {
  let world: World;
  let operator: Running;
  const counted = new Map<string, number>();
  const depths = new Map<string, number>();
  const inWork = new Map<string, () => number>();

  before(async () => {
    world = await startWorld();
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
    operator = await startOperator(world, undefined, { metrics });
  });

  after(async () => {
    await operator?.stop();
    await world?.[Symbol.asyncDispose]();
  });

  const call = (method: string, path: string, body: string, contentType = 'application/json') =>
    world.plane.admin.call(method, path, { body, contentType });

  /** A new object, one that is changed after it was made, or what somebody claims of one. */
  const attempt = async (kind: Kind, namespace: string, name: string, draw: Draw): Promise<Trial> => {
    const sample = placed(oneOf(draw, samplesOf(kind)), namespace, name);
    const collection = `/apis/temper.dev/v1alpha1/namespaces/${namespace}/${PLURALS[kind]}`;
    const own = `${collection}/${name}`;
    const strict = draw(4) === 0 ? '' : '?fieldValidation=Strict';
    const send = async (how: string, mutant: Mutant, method: string, path: string, type?: string): Promise<Trial> => {
      return { how, mutant, answer: await call(method, path, mutant.text, type) };
    };
    /** Over whatever the operator wrote meanwhile. */
    const put = async (how: string, mutant: Mutant, path: string, version: string): Promise<Trial> => {
      const trial = await send(how, mutant, 'PUT', path);
      if (!/has been modified/.test(String(trial.answer.body['message']))) return trial;
      const latest = versionOf((await world.plane.admin.call('GET', own)).body as JsonObject);
      return put(how, { ...mutant, text: mutant.text.replace(`"${version}"`, `"${latest}"`) }, path, latest);
    };
    const how = draw(20);
    if (how < 13) return send('create', mutantOf(sample, draw), 'POST', `${collection}${strict}`);
    if (how < 15) {
      return send('apply', mutantOf(sample, draw), 'PATCH', `${own}?fieldManager=test`, 'application/apply-patch+yaml');
    }
    const made = await call('POST', collection, written(sample));
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const stored = withoutRecords(made.body as JsonObject);
    const version = versionOf(stored);
    if (how < 18) return put('replace', mutantOf(stored, draw), `${own}${strict}`, version);
    const said = { ...stored, status: oneOf(draw, FORGED) };
    return put('status', mutantOf(said, draw, ['status']), `${own}/status${strict}`, version);
  };

  /** Everything needed to see it again. */
  const complaint = (kind: Kind, index: number, { how, mutant, answer }: Trial, what: string): string => {
    const seen = { seed: SEED, kind, index, how, changes: mutant.changes, answer };
    return `${what}\n${JSON.stringify(seen, null, 1).slice(0, 4_000)}\n${mutant.text.slice(0, 4_000)}`;
  };

  for (const [position, kind] of KINDS.entries()) {
    it(`of kind ${kind}: each is refused with the field it is about, or taken and judged`, async (t) => {
      const started = performance.now();
      const spaces = Array.from(
        { length: Math.ceil(MUTANTS / PER_NAMESPACE) },
        (_, at) => `${kind.toLowerCase()}-${at}`,
      );
      for (const namespace of spaces) {
        await world.namespace(namespace);
        const quotas = { agents: 60 };
        for (const name of ['standard', 'minimal']) await world.apply(policyOf(namespace, { quotas }, name));
      }
      const tally = new Map<string, number>();
      const complaints: string[] = [];
      let next = 0;
      const worker = async () => {
        for (let index = next++; index < MUTANTS; index = next++) {
          const draw = drawsOf(SEED + position * 1_000_003 + index);
          const namespace = spaces[Math.floor(index / PER_NAMESPACE)] ?? '';
          const trial = await attempt(kind, namespace, `mutant-${index}`, draw);
          const { status } = trial.answer;
          if ((status >= 500 && !isWrongShape(trial.answer)) || status < 200)
            complaints.push(complaint(kind, index, trial, 'the server failed'));
          if (status >= 400 && !namesField(trial.answer))
            complaints.push(complaint(kind, index, trial, 'no field is named'));
          const ending = status < 300 ? 'taken' : 'refused';
          if (kind === 'TrustPolicy' && ending === 'taken') await putUnder(trial.answer, namespace, index);
          tally.set(`${trial.how} ${ending}`, (tally.get(`${trial.how} ${ending}`) ?? 0) + 1);
        }
      };
      await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
      assert.equal(complaints.length, 0, `${complaints.length} complaints:\n${complaints.slice(0, 5).join('\n\n')}`);
      const sent = performance.now();
      for (const namespace of spaces) {
        if (kind === 'TrustPolicy') await judged(kind, namespace);
        if (kind === 'Agent' || kind === 'TrustPolicy') await judged('Agent', namespace);
      }
      const seconds = (from: number, to: number) => `${((to - from) / 1_000).toFixed(1)} s`;
      t.diagnostic(
        `${JSON.stringify(Object.fromEntries(tally))} sent in ${seconds(started, sent)}, judged ${seconds(sent, performance.now())} later`,
      );
      const ends = [...tally.keys()];
      assert.ok(ends.includes('create taken') && ends.includes('create refused'), ends.join());
    });
  }

  /** What a policy says matters to those who name it. */
  const putUnder = async ({ body }: ApiAnswer, namespace: string, index: number) => {
    const { name } = body['metadata'] as { name: string };
    await world.apply(agentOf(namespace, `under-${index}`, { trustPolicyRef: { name } }));
  };

  /** Every object that is there has the conditions the operator gives it, for this very generation. */
  const judged = (kind: 'Agent' | 'TrustPolicy', namespace: string) => {
    const type = kind === 'Agent' ? TYPES.agents : TYPES.trustPolicies;
    const isJudged = ({ metadata, status }: StoredAgent | StoredPolicy) => {
      const ready = status?.conditions?.find((condition) => condition.type === 'Ready');
      const isCurrent = ready?.observedGeneration === metadata.generation && ready.message !== CLAIMED;
      return metadata.deletionTimestamp !== undefined || (isCurrent && isKnownReason(kind, 'Ready', ready.reason));
    };
    return eventually(
      async () => {
        const all = await world.client.list<StoredAgent | StoredPolicy>(type, { namespace }, never);
        return all.filter((object) => !isJudged(object));
      },
      (waiting) => waiting.length === 0,
      `a condition for every ${kind} of ${namespace}`,
    );
  };

  it('that hold numbers nobody can read stop no neighbour', async () => {
    const memory = '999999999999Ti';
    await world.namespace('numbers');
    await world.apply(policyOf('numbers'));
    await world.apply(policyOf('numbers', { quotas: { memory } }, 'unreadable'));
    await world.apply(agentOf('numbers', 'under-it', { trustPolicyRef: { name: 'unreadable' } }));
    await world.apply(agentOf('numbers', 'itself', { sandbox: { resources: { memory } } }));
    await world.apply(agentOf('numbers', 'neighbour'));
    await world.agentWith('numbers', 'neighbour', 'runs', (agent) => readyReason(agent) === 'Running');
    for (const [name, field] of [
      ['under-it', 'TrustPolicy "unreadable" cannot be used: spec.quotas.memory'],
      ['itself', 'spec.sandbox.resources.memory'],
    ] as const) {
      const agent = await world.agentWith(
        'numbers',
        name,
        'is judged',
        (found) => readyReason(found) === 'InvalidSpec',
      );
      assert.ok(messageOfReady(agent).startsWith(`${field}: "${memory}" is not a number of bytes`));
    }
  });

  it('leave an operator behind that has nothing left to do and failed at nothing', async () => {
    const idle = () => ({
      queued: [...depths].filter(([, depth]) => depth > 0),
      working: [...inWork].filter(([, read]) => read() > 0).map(([name]) => name),
    });
    await eventually(
      () => Promise.resolve(idle()),
      ({ queued, working }) => queued.length === 0 && working.length === 0,
      'empty queues',
    );
    const failures = [...counted].filter(([name, count]) => /errors|panics|timeouts/.test(name) && count > 0);
    assert.deepEqual(failures, []);
    assert.deepEqual(Object.keys(Object.prototype), []);
    assert.equal(Reflect.get({}, 'polluted'), undefined);
  });

  it('do not keep a good agent from Ready', async () => {
    await world.namespace('good');
    await world.apply(policyOf('good'));
    await world.apply(agentOf('good', 'analyst'));
    await world.agentWith('good', 'analyst', 'runs', (agent) => readyReason(agent) === 'Running');
  });
});
