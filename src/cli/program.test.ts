import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type FakeCluster, fakeCluster } from './cluster/api-server.testing.ts';
import { aTerminal, type FakeTerminal } from './io.testing.ts';
import { runCommandLine } from './command-line.ts';
import { createProgram } from './program.ts';

const TABLE = { kind: 'Table', columnDefinitions: [{ name: 'Name', priority: 0 }], rows: [{ cells: ['analyst'] }] };

function served(): Promise<FakeCluster> {
  const items = ['analyst', 'reviewer'].map((name) => ({ metadata: { name, namespace: 'team-a' } }));
  return fakeCluster(({ headers }) => {
    const isTable = headers.accept?.includes('as=Table') === true;
    return { status: 200, body: isTable ? TABLE : { kind: 'AgentList', metadata: { resourceVersion: '1' }, items } };
  });
}

async function run(io: FakeTerminal, ...words: string[]): Promise<number> {
  let code = 0;
  await createProgram(io, (exitCode) => {
    code = exitCode;
  }).parseAsync(words, { from: 'user' });
  return code;
}

const plugin = (): FakeTerminal => ({ ...aTerminal(), environment: { TEMPER_PROGRAM: 'kubectl-temper' } });

describe('the command line', () => {
  it('the command line acts on the state folder, or on a cluster when the options name one', async () => {
    await using cluster = await served();
    const folder = aTerminal();
    await assert.rejects(run(folder, 'get', 'agents', '--state', '/nonexistent'), { code: 'TEMPER_STATE_NOT_FOUND' });
    assert.equal(cluster.requests.length, 0);
    const io = aTerminal();
    assert.equal(await run(io, 'get', 'agents', '--kubeconfig', cluster.kubeconfig, '-n', 'team-b'), 0);
    assert.equal(io.printed(), 'NAME\nanalyst\n');
    assert.equal(cluster.requests[0]?.path, '/apis/temper.dev/v1alpha1/namespaces/team-b/agents');
  });

  it('the kubectl plug-in acts on the cluster, and refuses verbs for a state folder', async () => {
    await using cluster = await served();
    assert.equal(await run(plugin(), 'get', 'agents', '--kubeconfig', cluster.kubeconfig), 0);
    assert.equal(cluster.requests.length, 1);
    await assert.rejects(run(plugin(), 'trace', 'x'), { code: 'TEMPER_USAGE' });
  });

  it('the help of the kubectl plug-in omits the verbs that it refuses', async () => {
    const verbs = /^ {2}judges /m;
    for (const [io, isListed] of [
      [aTerminal(), true],
      [plugin(), false],
    ] as const) {
      await assert.rejects(run(io, '--help'), { exitCode: 0 });
      assert.match(io.printed(), /^ {2}get /m);
      assert.equal(verbs.test(io.printed()), isListed);
    }
  });

  it('every verb in the help of the kubectl plug-in acts on a cluster, or lists a subcommand that does', async () => {
    const program = createProgram(plugin(), () => {});
    const help = program.createHelp();
    const groups = help.visibleCommands(program).filter(({ commands }) => commands.length > 0);
    const empty = groups.filter((group) => help.visibleCommands(group).every((verb) => verb.name() === 'help'));
    assert.ok(groups.length > 5);
    assert.deepEqual(
      empty.map((group) => group.name()),
      [],
    );
    const io = plugin();
    await assert.rejects(run(io, 'audit'), { exitCode: 1 });
    assert.match(io.errors(), /verify the provenance chain of the cluster[^]*^ {2}verify [^]*^ {2}show /m);
    assert.doesNotMatch(io.errors(), /--adopt/);
  });

  it('an error that repeats untrusted text controls no terminal', async () => {
    for (const words of [
      ['get', '\u001b]52;c;eA==\u0007'],
      ['get', 'agents', '--\u009b2J'],
      ['trace', '\u202ex'],
    ]) {
      const io = aTerminal();
      assert.equal(await runCommandLine(words, io), 2);
      assert.match(io.errors(), /\\u/);
      assert.doesNotMatch(io.errors(), /[^\n\x20-\x7e]/);
    }
  });

  it('version and --version print the same', async () => {
    const [verb, option] = [aTerminal(), aTerminal()];
    assert.equal(await run(verb, 'version'), 0);
    await assert.rejects(run(option, '--version'), { exitCode: 0 });
    assert.match(verb.printed(), /^temper \d+\.\d+\.\d+ \(node /);
    assert.equal(option.printed(), verb.printed());
  });
});
