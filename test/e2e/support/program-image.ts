import { execFile } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { CONTAINERD } from '../../cluster/node/config.ts';
import type { NodeCluster } from '../../cluster/node.ts';
import { publishedFolders } from '../../support/mcp/published-servers.ts';
import { ROOT } from './installed-cluster.ts';

/** CommonJS packages call `require` for Node's own modules. */
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/** Builds the image of the agent program of the tests from the sandbox image, and returns its entry in `agentPrograms` of the chart. */
export async function provideProgram(node: NodeCluster): Promise<object> {
  const image = await provideImage(node, 'agent-program', join(ROOT, 'test/fixtures/acp-agent/agent.ts'));
  return { name: 'fixture', image, folder: '/opt/fixture', program: 'main.mjs', memory: '1Gi', homes: '64Mi' };
}

/** Builds the image of `server-memory` from npm, and returns its entry in `mcpServers` of the chart. */
export async function provideMcpServer(node: NodeCluster, namespace: string): Promise<object> {
  const { scriptOf } = await publishedFolders();
  return {
    name: 'memory',
    image: await provideImage(node, 'mcp-server', scriptOf('memory')),
    command: 'node',
    arguments: ['/opt/mcp-server/main.mjs'],
    environment: { MEMORY_FILE_PATH: '$(HOME)/memory.jsonl' },
    folder: '/opt/mcp-server',
    namespaces: [namespace],
    sessions: 2,
    memory: '128Mi',
    home: '8Mi',
    resources: { cpu: '10m' },
  };
}

/** Builds the image of a sandbox class: the sandbox image with Git and `wc` of this machine, as `localhost/temper-toolchain:e2e`. */
export async function provideToolchain(node: NodeCluster): Promise<void> {
  const run = promisify(execFile);
  const folder = join(ROOT, 'dist/images/toolchain');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const program of ['/usr/bin/git', '/usr/bin/wc']) {
    const { stdout } = await run('ldd', [program]);
    const libraries = stdout.match(/\/[^\s)]+/g) ?? [];
    await run('cp', ['--dereference', '--parents', program, ...libraries, folder]);
  }
  await node.buildImage(join(ROOT, 'test/e2e/toolchain/Containerfile'), 'localhost/temper-toolchain:e2e');
}

/** The image of the Containerfile in the folder `name`, by its digest, with the bundled program as `main.mjs`. */
async function provideImage(node: NodeCluster, name: string, program: string): Promise<string> {
  await build({
    entryPoints: [program],
    outfile: join(ROOT, `dist/images/${name}/main.mjs`),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    banner: { js: REQUIRE },
    logLevel: 'warning',
  });
  const repository = `localhost/temper-${name}`;
  const tagged = `${repository}:e2e`;
  await node.buildImage(join(ROOT, `test/e2e/${name}/Containerfile`), tagged);
  const images = (...args: string[]) => node.onNode('ctr', '-a', CONTAINERD, '-n', 'k8s.io', 'images', ...args);
  const [digest] = /sha256:[0-9a-f]{64}/.exec(await images('ls', `name==${tagged}`)) ?? [];
  if (digest === undefined) throw new Error(`the image ${tagged} has no digest`);
  const image = `${repository}@${digest}`;
  await images('tag', '--force', tagged, image);
  return image;
}
