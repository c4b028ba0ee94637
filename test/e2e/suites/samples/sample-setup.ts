import assert from 'node:assert/strict';
import { join } from 'node:path';
import { pollValue } from '../../../support/poll.ts';
import { type CommandValues, readDocumentedCommands, type WordsOf } from '../../support/documented-page.ts';
import { NamespaceAgents, replies } from '../../support/fixture.ts';
import { type InstalledCluster, ROOT } from '../../support/installed-cluster.ts';

export const NAMESPACE = 'quickstart';
const PAGE = join(ROOT, 'docs/samples.md');
/** The first start of a pod on a busy node. */
const READY_SECONDS = 120;
const REPLY_TIMEOUT_MS = 180_000;

/** The commands of the page about samples, on a cluster with the quick start. */
export class SampleSetup {
  readonly cluster: InstalledCluster;
  readonly agents: NamespaceAgents;
  readonly #wordsOf: WordsOf;

  private constructor(cluster: InstalledCluster, wordsOf: WordsOf) {
    this.cluster = cluster;
    this.agents = new NamespaceAgents(cluster, NAMESPACE);
    this.#wordsOf = wordsOf;
  }

  static async open(cluster: InstalledCluster): Promise<SampleSetup> {
    return new SampleSetup(cluster, await readDocumentedCommands(PAGE));
  }

  /** Runs a command of the page as an administrator, and returns what it printed. */
  async run(command: string, values: CommandValues = {}): Promise<string> {
    const words = this.#wordsOf(command, values).map((word) =>
      word.startsWith('manifests/') ? join(ROOT, word) : word,
    );
    const [program, verb, ...rest] = words;
    assert.equal(program, 'kubectl', command);
    if (verb !== 'temper') return this.cluster.kubectl(...words.slice(1));
    const { code, stdout, stderr } = await this.cluster.temper(...rest);
    assert.equal(code, 0, `${command}: ${stdout}${stderr}`);
    return stdout;
  }

  /** Starts a sample and waits until these agents are Ready. Disposing removes it without waiting for the end of its pods. */
  async start(name: string, ...agents: string[]): Promise<AsyncDisposable> {
    await using stack = new AsyncDisposableStack();
    stack.defer(async () => {
      await this.cluster.kubectl('delete', '-n', NAMESPACE, '-k', join(ROOT, 'manifests', name), '--wait=false');
    });
    await this.run(`kubectl apply -n quickstart -k manifests/${name}`);
    for (const agent of agents) await this.cluster.waitFor(`agent/${agent}`, 'Ready', NAMESPACE, READY_SECONDS);
    return stack.move();
  }

  /** The replies of a session, of which there is at least one. */
  repliesOf(agent: string, session: string): Promise<string[]> {
    return pollValue(
      `a reply of ${agent} in ${session}`,
      async () => replies(await this.agents.sessionLines(agent, session)),
      ({ length }) => length > 0,
      { timeoutMs: REPLY_TIMEOUT_MS, intervalMs: 500 },
    );
  }
}
