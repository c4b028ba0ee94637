import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { temper, temporaryFolder } from './command.ts';

const WAYS =
  /TEMPER_KUBE_CONFIG: no kubeconfig was found .*set KUBECONFIG to the path .*, or name it with --kubeconfig FILE/;

describe('a verb on a cluster without a kubeconfig', () => {
  it('the error names every way to a kubeconfig, and the option that turned get to the cluster', async () => {
    await using home = await temporaryFolder();
    const options = { cwd: home.path, environment: { HOME: home.path } };
    for (const [option, words] of [
      ['-n', ['get', 'agents', '-n', 'team-a']],
      ['-A', ['get', 'agents', '-A']],
      [undefined, ['logs', 'assistant']],
      [undefined, ['suspend', 'assistant', '-n', 'team-a']],
    ] as const) {
      const { code, stderr } = await temper(words, options);
      assert.equal(code, 1, words.join(' '));
      assert.match(stderr, WAYS);
      const way = /\. (\S+) asks a cluster; leave it out to read the state folder \.temper$/m.exec(stderr);
      assert.equal(way?.[1], option, stderr);
    }
  });
});
