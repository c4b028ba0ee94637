/**
 * Bundles what the images run: one file for each role, with its source map beside it. A bundle holds the modules and packages that its
 * role loads and no others, so a pod reads and compiles one file.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { linkRunnerProgram } from '../src/sandbox/program.ts';

const ROOT = resolve(import.meta.dirname, '..');
const ENTRY = 'src/cli/main.ts';

/**
 * For each bundle the dynamic imports of the command line that it keeps, as paths in the repository. An import that is left out throws,
 * and only a verb that the dispatcher sends to another bundle reaches it.
 */
const KEPT_IMPORTS = {
  agent: /^src\/cli\/serve\/serve-agent\.ts$/,
  sandbox: /^src\/cli\/serve\/serve-sandbox\.ts$/,
  gateway: /^src\/(?:cli\/serve\/serve\.ts$|gateway\/)/,
  operator: /^src\/(?:cli\/serve\/serve\.ts$|operator\/)/,
  cli: /^src\/(?!cli\/serve\/|gateway\/|operator\/)/,
} as const;
/** Imports that each bundle keeps. */
const SHARED_IMPORTS = /^(?:package\.json|src\/cli\/stack-traces\.ts)$/;

export type Bundle = keyof typeof KEPT_IMPORTS;

/** CommonJS packages call `require` for Node's own modules. */
const REQUIRE =
  "import { createRequire as createBundleRequire } from 'node:module'; const require = createBundleRequire(import.meta.url);";

/** Writes `<folder>/<name>.mjs` and `<name>.mjs.map`. Throws what esbuild throws for a module that cannot be resolved. */
export async function bundle(name: Bundle, folder: string): Promise<void> {
  const outfile = join(folder, `${name}.mjs`);
  await build({
    absWorkingDir: ROOT,
    entryPoints: [ENTRY],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    // Node keeps the text of the bundle twice, so white space costs memory. Names stay, so that heap profiles are readable, and lines stay
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
      keptImports(KEPT_IMPORTS[name]),
      linkedRunner(await linkRunnerProgram()),
      linkedVetting(),
      kubeConfigOnly(),
      lazyHttp(),
    ],
    logLevel: 'warning',
  });
  await nameSources(`${outfile}.map`);
}

/** Sources are named from the repository on, wherever the bundle is built and run. */
async function nameSources(file: string): Promise<void> {
  const map = JSON.parse(await readFile(file, 'utf8')) as { sources: string[] };
  map.sources = map.sources.map((source) => relative(ROOT, resolve(dirname(file), source)));
  await writeFile(file, JSON.stringify(map));
}

function keptImports(kept: RegExp): Plugin {
  return {
    name: 'kept-imports',
    setup(hooks) {
      hooks.onResolve({ filter: /^\./ }, ({ kind, path, resolveDir, importer }) => {
        if (kind !== 'dynamic-import' || !importer.startsWith(join(ROOT, 'src'))) return undefined;
        const target = relative(ROOT, resolve(resolveDir, path));
        return kept.test(target) || SHARED_IMPORTS.test(target) ? undefined : { path: target, namespace: 'left-out' };
      });
      hooks.onLoad({ filter: /.*/, namespace: 'left-out' }, ({ path }) => ({
        contents: `throw new Error(${JSON.stringify(`${path} is not part of this bundle`)});export {}`,
      }));
    },
  };
}

/** The runner's program is text that the supervisor sends; the bundle holds it linked. */
function linkedRunner(program: string): Plugin {
  return {
    name: 'linked-runner',
    setup(hooks) {
      hooks.onLoad({ filter: /\/src\/sandbox\/program\.ts$/ }, () => ({
        contents: `export const linkRunnerProgram = async () => ${JSON.stringify(program)};`,
      }));
    },
  };
}

/** The program of the threads that vet tools, as the text of one CommonJS module. */
export async function vettingProgram(): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/gateway/review/vetting/worker.ts'],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    target: 'node26',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    logLevel: 'warning',
  });
  return outputFiles[0]?.text ?? '';
}

/** A bundle is one file, so it holds the program of its threads as text. */
function linkedVetting(): Plugin {
  return {
    name: 'linked-vetting',
    setup(hooks) {
      hooks.onLoad({ filter: /\/src\/gateway\/review\/vetting\/program\.ts$/ }, async () => ({
        contents: [
          "import { Worker } from 'node:worker_threads';",
          `const program = ${JSON.stringify(await vettingProgram())};`,
          'export const startVettingThread = (options) => new Worker(program, { ...options, eval: true });',
        ].join('\n'),
      }));
    },
  };
}

/**
 * Of the Kubernetes client the code uses `KubeConfig` alone. Its package also exports some thousand generated classes, which a bundle of
 * a dynamic import would keep.
 */
function kubeConfigOnly(): Plugin {
  const folder = join(ROOT, 'node_modules/@kubernetes/client-node/dist');
  return {
    name: 'kube-config-only',
    setup(hooks) {
      hooks.onResolve({ filter: /^@kubernetes\/client-node$/ }, () => ({
        path: join(folder, 'config.js'),
        sideEffects: false,
      }));
      hooks.onResolve({ filter: /^\.\/.*\.js$/ }, ({ path, resolveDir, importer }) =>
        importer.startsWith(folder) ? { path: resolve(resolveDir, path), sideEffects: false } : undefined,
      );
    },
  };
}

/**
 * An ES import of `node:http` reads all its exports. One of them is a lazy getter that loads Node's own fetch, which takes 15 MB; `require`
 * reads none.
 */
function lazyHttp(): Plugin {
  return {
    name: 'lazy-http',
    setup(hooks) {
      hooks.onResolve({ filter: /^(?:node:)?http$/ }, ({ kind }) =>
        kind === 'import-statement' ? { path: 'node:http', namespace: 'lazy-http' } : undefined,
      );
      hooks.onLoad({ filter: /.*/, namespace: 'lazy-http' }, ({ path }) => ({
        contents: `module.exports = require(${JSON.stringify(path)});`,
      }));
    },
  };
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
