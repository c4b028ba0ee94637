import { join } from 'node:path';
import { build } from 'esbuild';
import { CONTAINERD } from '../../cluster/node/config.ts';
import type { NodeCluster } from '../../cluster/node.ts';
import { ROOT } from './installed-cluster.ts';

const IMAGE = 'localhost/temper-agent-program';
/** CommonJS packages call `require` for Node's own modules. */
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/** Builds the image of the agent program of the tests from the sandbox image, and returns its entry in `agentPrograms` of the chart. */
export async function provideProgram(node: NodeCluster): Promise<object> {
  await build({
    entryPoints: [join(ROOT, 'test/fixtures/acp-agent/agent.ts')],
    outfile: join(ROOT, 'dist/images/agent-program/main.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    banner: { js: REQUIRE },
    logLevel: 'warning',
  });
  await node.buildImage(join(ROOT, 'test/e2e/agent-program/Containerfile'), `${IMAGE}:e2e`);
  const images = (...args: string[]) => node.onNode('ctr', '-a', CONTAINERD, '-n', 'k8s.io', 'images', ...args);
  const [digest] = /sha256:[0-9a-f]{64}/.exec(await images('ls', `name==${IMAGE}:e2e`)) ?? [];
  if (digest === undefined) throw new Error('the image of the agent program has no digest');
  const image = `${IMAGE}@${digest}`;
  await images('tag', '--force', `${IMAGE}:e2e`, image);
  return { name: 'fixture', image, folder: '/opt/fixture', program: 'main.mjs', memory: '1Gi', homes: '64Mi' };
}
