import { execFile } from 'node:child_process';
import { glob, mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { CONTAINERD } from '../../cluster/node/config.ts';
import type { NodeCluster } from '../../cluster/node.ts';
import { publishedFolders, PYTHON } from '../../support/mcp/published-servers.ts';
import { ROOT } from './installed-cluster.ts';

const run = promisify(execFile);
/** CommonJS packages call `require` for Node's own modules. */
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/** Builds the image of the agent program of the tests from the sandbox image, and returns its entry in `agentPrograms` of the chart. */
export async function provideProgram(node: NodeCluster): Promise<object> {
  const name = 'agent-program';
  await build({
    entryPoints: [join(ROOT, 'test/fixtures/acp-agent/agent.ts')],
    outfile: join(ROOT, `dist/images/${name}/main.mjs`),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    banner: { js: REQUIRE },
    logLevel: 'warning',
  });
  const image = await provideImage(node, name);
  return { name: 'fixture', image, folder: '/opt/fixture', program: 'main.mjs', memory: '1Gi', homes: '64Mi' };
}

/** Where the image of the MCP servers has its packages, and a repository with one commit. */
const SERVER_FOLDER = '/opt/mcp-server';
const SERVER_REPOSITORY = `${SERVER_FOLDER}/repository`;

const scriptIn = (name: string): string =>
  `${SERVER_FOLDER}/node_modules/@modelcontextprotocol/server-${name}/dist/index.js`;
const PYTHONPATH = { PYTHONPATH: `${SERVER_FOLDER}/python` };

/** What the platform starts for each published server, as in `mcpServers` of the chart. */
const SERVERS = [
  {
    name: 'memory',
    command: 'node',
    arguments: [scriptIn('memory')],
    environment: { MEMORY_FILE_PATH: '$(HOME)/memory.jsonl' },
  },
  { name: 'filesystem', command: 'node', arguments: [scriptIn('filesystem'), '$(HOME)'] },
  { name: 'everything', command: 'node', arguments: [scriptIn('everything'), 'stdio'] },
  {
    name: 'time',
    command: 'python3',
    arguments: ['-m', 'mcp_server_time', '--local-timezone', 'UTC'],
    environment: PYTHONPATH,
  },
  {
    name: 'git',
    command: 'python3',
    arguments: ['-m', 'mcp_server_git', '--repository', SERVER_REPOSITORY],
    // The files of an image belong to another user.
    environment: {
      ...PYTHONPATH,
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: SERVER_REPOSITORY,
    },
  },
] as const;

/** Builds one image of servers from npm and PyPI, and returns their entries in `mcpServers` of the chart. */
export async function provideMcpServers(node: NodeCluster, namespace: string): Promise<object[]> {
  const { npm, python } = await publishedFolders();
  const folder = await emptyFolder('mcp-server');
  await run('cp', ['-a', npm, join(folder, 'node_modules')]);
  await run('cp', ['-a', python, join(folder, 'python')]);
  await commitIn(join(folder, 'repository'));
  const system = await emptyFolder('mcp-server-system');
  const { stdout } = await run(PYTHON, ['-c', 'import sysconfig; print(sysconfig.get_path("stdlib"))']);
  const standard = stdout.trim();
  const modules = [...(await nativeModules(standard)), ...(await nativeModules(python))];
  await copyWithLibraries([PYTHON, '/usr/bin/git'], system, modules);
  await mkdir(dirname(join(system, standard)), { recursive: true });
  await run('cp', ['-a', standard, join(system, standard)]);
  const image = await provideImage(node, 'mcp-server');
  const size = { sessions: 2, memory: '160Mi', home: '8Mi', resources: { cpu: '10m' } };
  return SERVERS.map((server) => ({ ...server, image, folder: SERVER_FOLDER, namespaces: [namespace], ...size }));
}

/** A repository with one commit, so that a server of Git has something to read. */
async function commitIn(folder: string): Promise<void> {
  await mkdir(folder);
  const author = ['-c', 'user.name=Kim', '-c', 'user.email=kim@example.com'];
  await run('git', ['init', '--quiet', folder]);
  await run('git', ['-C', folder, ...author, 'commit', '--quiet', '--allow-empty', '-m', 'Plant the tea']);
}

async function nativeModules(folder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const file of glob('**/*.so', { cwd: folder })) found.push(join(folder, file));
  return found;
}

/** Builds the image of a sandbox class: the sandbox image with Git and `wc` of this machine, as `localhost/temper-toolchain:e2e`. */
export async function provideToolchain(node: NodeCluster): Promise<void> {
  await copyWithLibraries(['/usr/bin/git', '/usr/bin/wc'], await emptyFolder('toolchain'));
  await node.buildImage(join(ROOT, 'test/e2e/toolchain/Containerfile'), 'localhost/temper-toolchain:e2e');
}

async function emptyFolder(name: string): Promise<string> {
  const folder = join(ROOT, 'dist/images', name);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  return folder;
}

/** Copies programs, and the libraries of the system that they and the modules load, each to its own path below the folder. */
async function copyWithLibraries(programs: readonly string[], folder: string, modules: readonly string[] = []) {
  const { stdout } = await run('ldd', [...programs, ...modules]);
  const libraries = stdout.match(/\/(?:usr\/)?lib\S+(?= \(0x)/g) ?? [];
  await run('cp', ['--dereference', '--parents', ...new Set([...programs, ...libraries]), folder]);
}

/** The image of the Containerfile in the folder `name`, by its digest. */
async function provideImage(node: NodeCluster, name: string): Promise<string> {
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
