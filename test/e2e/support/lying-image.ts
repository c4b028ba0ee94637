import { join } from 'node:path';
import { build } from 'esbuild';
import { CONTAINERD } from '../../cluster/node/config.ts';
import type { NodeCluster } from '../../cluster/node.ts';
import { ROOT } from './installed-cluster.ts';

const FOLDER = join(ROOT, 'test/e2e/lying-agent');
/** Where the Containerfile finds the program. */
const PROGRAM = join(ROOT, 'dist/images/lying-agent/agent.mjs');
const RELEASE = 'localhost/temper:e2e';
const KEPT = 'localhost/temper:e2e-release';
const LYING = 'localhost/temper:e2e-lying';
/** CommonJS packages call `require` for Node's own modules. */
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/** Builds the image of the lying agent from the image of the release. */
export async function buildLyingImage(node: NodeCluster): Promise<void> {
  await build({
    entryPoints: [join(FOLDER, 'main.ts')],
    outfile: PROGRAM,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    banner: { js: REQUIRE },
    external: ['isolated-vm'],
    logLevel: 'warning',
  });
  await node.buildImage(join(FOLDER, 'Containerfile'), LYING);
}

/** Starts pods while the tag of the release names the lying image, as when an attacker moves a tag in a registry. */
export async function withMovedTag(node: NodeCluster, start: () => Promise<void>): Promise<void> {
  const tag = (from: string, to: string) =>
    node.onNode('ctr', '-a', CONTAINERD, '-n', 'k8s.io', 'images', 'tag', '--force', from, to);
  await tag(RELEASE, KEPT);
  await tag(LYING, RELEASE);
  try {
    await start();
  } finally {
    await tag(KEPT, RELEASE);
  }
}
