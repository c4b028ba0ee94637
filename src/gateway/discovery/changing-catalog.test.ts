import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { FakeClock } from '../../../test/support/clocks.ts';
import { conceptVector } from '../../../test/support/concept-vectors.ts';
import { seededRandom } from '../../../test/support/seeded-random.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { DiscoveryEntry } from '../../discovery/entry.ts';
import { type Change, Store } from '../../kube/informer/store.ts';
import { isTemperError } from '../../lib/errors.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { type CatalogObject, pruneCapability } from './catalog-entries.ts';
import { WatchedCatalog } from './catalog.ts';
import { rankCapabilities } from './rank-capabilities.ts';
import { SearchTurns } from './search-turns.ts';

const CAPABILITIES = 500;
const AGENTS = 50;
const SEARCHES = 3;
/** A refused agent asks again after so many turns of the event loop. */
const TURNS_OF_REFUSED = 100;
const NAMESPACE = 'team-a';
const TOPICS = ['rain', 'invoice', 'flight', 'photo', 'dinner'];
/** Longer than a turn of a search. */
const STEP_MS = 5;

/** A clock that each reading moves by more than a turn, so every step of a search is a turn of its own, and the catalog changes after each. */
const steppingClock = () => {
  let ms = 0;
  return { monotonic: () => (ms += STEP_MS) };
};

/** A catalog as the watch of the gateway feeds it, with all its revisions. */
class RevisedCatalog {
  readonly catalog: WatchedCatalog;
  readonly #store = new Store<CatalogObject>();
  readonly #random = seededRandom(11);
  /** Of each revision, the capabilities of each topic as an answer must have them. */
  readonly #revisions: ReadonlyMap<string, string>[] = [new Map()];

  constructor() {
    const log = createLogger({ level: 'error', destination: { write: () => true }, secrets: createSecretRedactor() });
    this.catalog = new WatchedCatalog({
      read: async () => undefined,
      sources: { get: async () => undefined },
      isServed: () => true,
      log,
    });
    for (let number = 0; number < CAPABILITIES; number += 1) this.#set(`c-${number}`);
  }

  get current(): number {
    return this.#revisions.length - 1;
  }

  get size(): number {
    return this.#store.size;
  }

  about(topic: string, revision: number): string {
    return this.#revisions[revision]?.get(topic) ?? '';
  }

  /** Applies one event: nine of ten set a capability, and one deletes it. Returns a topic whose capabilities it changed. */
  change(): string {
    const name = `c-${this.#random(CAPABILITIES)}`;
    if (this.#random(10) > 0) return this.#set(name);
    const key = `${NAMESPACE}/${name}`;
    const topic = topicOf(this.#store.get(key)?.entry);
    this.#apply(this.#store.delete(key), [topic]);
    return topic;
  }

  #set(name: string): string {
    const revision = this.#revisions.length;
    const topic = TOPICS[this.#random(TOPICS.length)] ?? '';
    const object = pruneCapability({
      metadata: { name, namespace: NAMESPACE, uid: name, resourceVersion: String(revision) },
      spec: { type: 'Skill', description: `Number ${revision} about ${topic}.` },
    } as unknown as CatalogObject);
    const before = topicOf(this.#store.get(`${NAMESPACE}/${name}`)?.entry);
    this.#apply(this.#store.set(object), [before, topic]);
    return topic;
  }

  #apply(changes: readonly Change<CatalogObject>[], topics: readonly string[]): void {
    for (const change of changes) this.catalog.capabilityChanged(change);
    const entries = this.#store.list().flatMap(({ entry }) => entry ?? []);
    const linesAbout = (topic: string) => linesOf(entries.filter((entry) => topicOf(entry) === topic));
    this.#revisions.push(
      new Map([...(this.#revisions.at(-1) ?? []), ...topics.map((topic) => [topic, linesAbout(topic)] as const)]),
    );
  }
}

function topicOf(entry: DiscoveryEntry | undefined): string {
  return TOPICS.find((topic) => entry?.description.includes(topic)) ?? 'rain';
}

function linesOf(entries: readonly DiscoveryEntry[]): string {
  return entries
    .map(({ id, description }) => `${id}: ${description}`)
    .toSorted()
    .join('\n');
}

/** An answer, with the revisions that were current at its moments. */
interface Answer {
  topic: string;
  lines: string;
  asked: number;
  /** When the embedder had the vector of the query; without an embedder as `asked`. */
  embedded: number;
  answered: number;
}

const STATE = {
  agent: { metadata: { name: 'analyst', namespace: NAMESPACE }, spec: { model: { primary: 'replay/model' } } },
  policy: { metadata: { uid: 'uid-policy', name: 'standard', namespace: NAMESPACE }, spec: {} },
  ancestors: [],
};

/** Agents that ask a gateway; `embed` is its embedder. */
function askers(revised: RevisedCatalog, embed?: (texts: string[]) => Promise<Float32Array[]>) {
  const embeddedAt = new Map<string, number>();
  const pipeline = {
    async embed(texts: string[], { caller }: { caller: { id: string } }) {
      const vectors = await embed?.(texts);
      embeddedAt.set(caller.id, revised.current);
      return vectors;
    },
  };
  const rank = rankCapabilities({
    models: {
      resolve: (id: string) => ({ id }),
      pipeline,
      ...(embed === undefined ? {} : { discovery: { embedder: 'tei/concepts' } }),
    },
    directory: { snapshot: () => ({ ...STATE, level: 'Full' }), decider: () => undefined, policy: () => undefined },
    ledger: { ledger: () => undefined },
    usageRecorder: { of: () => undefined },
    metrics: { count: () => undefined, observe: () => undefined },
    turns: new SearchTurns({ clock: steppingClock() }),
    clock: new FakeClock(),
    closing: NEVER_ABORTED,
  } as never);
  return async (agent: number, topic: string, query = topic): Promise<Answer> => {
    const agentUid = `uid-${agent}`;
    for (;;) {
      const asked = revised.current;
      embeddedAt.delete(`${agentUid} discovery`);
      try {
        const ranked = await rank({
          query: { query },
          scope: { indexes: [revised.catalog.index(NAMESPACE)], permits: () => true },
          owners: new Map(),
          claims: { agentUid, namespace: NAMESPACE, root: 'root', deadline: '2100-01-01T00:00:00Z' },
          state: { uid: agentUid, ...STATE },
          request: { id: agentUid, disconnected: NEVER_ABORTED },
        } as never);
        const lines = linesOf(ranked.map(({ entry }) => entry));
        const embedded = embeddedAt.get(`${agentUid} discovery`) ?? asked;
        return { topic, lines, asked, embedded, answered: revised.current };
      } catch (error) {
        // As a pod does: more agents ask than a gateway has places for.
        if (!isTemperError(error, 'TEMPER_RATE_LIMITED')) throw error;
        for (let wait = 0; wait < TURNS_OF_REFUSED; wait += 1) await turn();
      }
    }
  };
}

/** The answers of all agents, while one event after the other changes the catalog. */
async function answersDuringChanges(revised: RevisedCatalog, ask: ReturnType<typeof askers>): Promise<Answer[]> {
  const over = new AbortController();
  const edit = async (): Promise<void> => {
    while (!over.signal.aborted) {
      revised.change();
      await turn();
    }
  };
  const agent = async (number: number): Promise<Answer[]> => {
    const answers: Answer[] = [];
    for (let asked = 0; asked < SEARCHES; asked += 1) {
      const topic = TOPICS[(number + asked) % TOPICS.length] ?? '';
      answers.push(await ask(number, topic, topic + '!'.repeat(asked)));
    }
    return answers;
  };
  const edits = edit();
  const answers = await Promise.all(Array.from({ length: AGENTS }, (_, number) => agent(number)));
  over.abort();
  await edits;
  return answers.flat();
}

/** The answer is one revision of the whole catalog: one that is not older than the question and the vector of its query. */
function assertWholeRevision(revised: RevisedCatalog, { topic, lines, asked, embedded, answered }: Answer): void {
  assert.ok(answered > asked, 'the catalog changed during the search');
  const first = Math.max(asked, embedded);
  const candidates = Array.from({ length: answered - first + 1 }, (_, at) => first + at);
  const isWhole = candidates.some((revision) => revised.about(topic, revision) === lines);
  assert.ok(isWhole, `no revision from ${first} to ${answered} has exactly these about ${topic}:\n${lines}`);
}

/** As slow as a server: the catalog changes meanwhile. */
async function slowVectors(texts: string[]): Promise<Float32Array[]> {
  for (let wait = 0; wait < 3; wait += 1) await turn();
  return texts.map((text) => conceptVector(text));
}

describe('a catalog of 500 capabilities that changes while 50 agents search', () => {
  for (const [how, embed] of [
    ['words', undefined],
    ['words and meaning', slowVectors],
  ] as const) {
    it(`each answer by ${how} is one whole revision of the catalog, at least as new as its question`, async (context) => {
      // No answer of this test depends on time.
      context.mock.timers.enable({ apis: ['setTimeout'] });
      const revised = new RevisedCatalog();
      const answers = await answersDuringChanges(revised, askers(revised, embed));
      assert.equal(answers.length, AGENTS * SEARCHES);
      for (const answer of answers) assertWholeRevision(revised, answer);
      assert.equal(revised.catalog.index(NAMESPACE).size, revised.size);
    });

    it(`a question by ${how} that follows a change has it in its answer`, async (context) => {
      context.mock.timers.enable({ apis: ['setTimeout'] });
      const revised = new RevisedCatalog();
      const ask = askers(revised, embed);
      for (let number = 0; number < 100; number += 1) {
        const changed = revised.change();
        const { lines, topic } = await ask(number % AGENTS, changed);
        assert.equal(lines, revised.about(topic, revised.current));
      }
    });
  }

  it('a question without a word of the catalog has what changed before it in its answer, by meaning', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const revised = new RevisedCatalog();
    const ask = askers(revised, slowVectors);
    for (let number = 0; number < 20; number += 1) {
      revised.change();
      const { lines } = await ask(number, 'rain', 'umbrella');
      assert.equal(lines, revised.about('rain', revised.current));
    }
  });
});
