/**
 * Bundles what the images run: for each role the files that it loads, with their source maps beside them. A bundle holds the modules and
 * packages that its role loads and no others.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { type BuildResult, build } from 'esbuild';
import { preloadTexts } from '../src/acp/process/preloads.ts';
import { filePreload } from '../src/sandbox/confined/file-preload.ts';
import { linkRunnerProgram } from '../src/sandbox/program.ts';
import {
  asciiPatterns,
  keptImports,
  kubeConfigOnly,
  lazyHttp,
  linkedPreloads,
  linkedRunner,
  linkedPageProgram,
  linkedThread,
  undiciCore,
  withoutPublicSuffixes,
} from './bundle-plugins.ts';

const ROOT = resolve(import.meta.dirname, '..');
const ENTRY = 'src/cli/main.ts';
/** The threads of the gateway: the folder of their program, the function that starts one, and the file of the program in the bundle. */
const THREADS = [
  { folder: 'gateway/review/vetting', start: 'startVettingThread', file: 'vetting.cjs' },
  { folder: 'gateway/memory-scan', start: 'startScanThread', file: 'memory-scan.cjs' },
] as const;

/**
 * For each bundle the dynamic imports of the command line that it keeps, as paths in the repository. An import that is left out throws,
 * and only a verb that the dispatcher sends to another bundle reaches it.
 */
const KEPT_IMPORTS = {
  agent:
    /^src\/(?:cli\/serve\/serve-agent\.ts$|acp\/provider\/program-providers\.ts$|toolbox\/web\/page\/program\.ts$)/,
  verifier: /^src\/cli\/serve\/serve-verifier\.ts$/,
  sandbox: /^src\/cli\/serve\/serve-sandbox\.ts$/,
  'mcp-bridge': /^src\/cli\/serve\/serve-mcp-bridge\.ts$/,
  gateway: /^src\/(?:cli\/serve\/serve\.ts$|gateway\/|mcp\/server\/|a2a\/)/,
  egress: /^src\/(?:cli\/serve\/serve\.ts$|egress\/)/,
  operator: /^src\/(?:cli\/serve\/serve\.ts$|operator\/)/,
  cli: /^src\/(?!cli\/serve\/|gateway\/|egress\/|operator\/)/,
} as const;
/** The bundles of pods of agents and of verifications. */
const POD_BUNDLES: readonly Bundle[] = ['agent', 'verifier', 'sandbox', 'mcp-bridge'];
/** Imports that each bundle keeps. */
const SHARED_IMPORTS = /^(?:package\.json|src\/cli\/stack-traces\.ts)$/;

export type Bundle = keyof typeof KEPT_IMPORTS;

/** CommonJS packages call `require` for Node's own modules. */
const REQUIRE =
  "import { createRequire as createBundleRequire } from 'node:module'; const require = createBundleRequire(import.meta.url);";

/**
 * Writes `<folder>/<name>.mjs`, which loads at once what the role needs to start, and `<folder>/<name>/*.mjs`, which it loads when it needs
 * them; each file has its source map beside it. Throws what esbuild throws for a module that cannot be resolved.
 */
export async function bundle(name: Bundle, folder: string): Promise<void> {
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: { [name]: ENTRY },
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    chunkNames: `${name}/[name]-[hash]`,
    write: false,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    // Node keeps the text of each file, so white space costs memory. Names stay, so that heap profiles are readable, and lines stay
    // short, because Node prints the line of an uncaught error.
    minifySyntax: true,
    minifyWhitespace: true,
    lineLimit: 160,
    legalComments: 'none',
    sourcemap: 'external',
    sourcesContent: false,
    banner: { js: REQUIRE },
    // A native module: its package is beside the bundle.
    external: ['isolated-vm'],
    plugins: [
      keptImports(SHARED_IMPORTS, KEPT_IMPORTS[name]),
      linkedRunner(await linkRunnerProgram()),
      linkedPreloads(await filePreload(), await preloadTexts()),
      ...THREADS.map(linkedThread),
      linkedPageProgram(await pageProgram()),
      kubeConfigOnly(),
      undiciCore(),
      lazyHttp(),
      asciiPatterns(),
      ...(POD_BUNDLES.includes(name) ? [withoutPublicSuffixes()] : []),
    ],
    logLevel: 'warning',
  });
  for (const { path, contents } of outputFiles) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, path.endsWith('.map') ? withNamedSources(path, contents) : contents);
  }
}

/** Sources are named from the repository on, wherever the bundle is built and run. */
function withNamedSources(path: string, contents: Uint8Array): string {
  const map = JSON.parse(Buffer.from(contents).toString()) as { sources: string[] };
  map.sources = map.sources.map((source) => relative(ROOT, resolve(dirname(path), source)));
  return JSON.stringify(map);
}

/** The program of the thread that reads a page of the web, as text. */
async function pageProgram(): Promise<string> {
  const { outputFiles } = await buildThread('src/toolbox/web/page/worker.ts', { write: false });
  return outputFiles?.[0]?.text ?? '';
}

/** Writes `<folder>/gateway/vetting.cjs` and `memory-scan.cjs`: the programs of the threads that the gateway's bundle starts. */
export async function bundleThreads(folder: string): Promise<void> {
  for (const { folder: source, file } of THREADS)
    await buildThread(`src/${source}/worker.ts`, { outfile: join(folder, 'gateway', file) });
}

function buildThread(entry: string, where: { write: false } | { outfile: string }): Promise<BuildResult> {
  return build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node26',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    plugins: [asciiPatterns()],
    logLevel: 'warning',
    ...where,
  });
}

/** Starts the bundle that holds the verb, so that an image has one entry point. */
export async function writeDispatcher(folder: string, roles: readonly Bundle[]): Promise<void> {
  const lines = [
    `const roles = new Set(${JSON.stringify(roles)});`,
    'const [, , verb, role] = process.argv;',
    "await import(verb === 'serve' && roles.has(role) ? `./${role}.mjs` : './cli.mjs');",
  ];
  await writeFile(join(folder, 'temper.mjs'), `${lines.join('\n')}\n`);
}
