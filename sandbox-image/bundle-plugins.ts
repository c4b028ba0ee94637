/** Plugins of esbuild that leave out of a bundle what its role never loads, and put the programs of runners and threads into it. */
import { readFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { parse, type Token, tokTypes } from 'acorn';
import type { Plugin } from 'esbuild';

const ROOT = resolve(import.meta.dirname, '..');

const LEFT_OUT = "throw new Error('this verb is not part of this bundle');export {}";

/** Leaves out the dynamic imports of the sources that match none of these patterns. One that is left out throws. */
export function keptImports(...kept: readonly RegExp[]): Plugin {
  return {
    name: 'kept-imports',
    setup(hooks) {
      hooks.onResolve({ filter: /^\./ }, ({ kind, path, resolveDir, importer }) => {
        if (kind !== 'dynamic-import' || !importer.startsWith(join(ROOT, 'src'))) return undefined;
        const target = relative(ROOT, resolve(resolveDir, path));
        return kept.some((pattern) => pattern.test(target)) ? undefined : { path: 'left-out', namespace: 'left-out' };
      });
      hooks.onLoad({ filter: /.*/, namespace: 'left-out' }, () => ({ contents: LEFT_OUT }));
    },
  };
}

/**
 * Leaves the Public Suffix List out of a bundle, whose patterns then take a wildcard before any name. The list takes 1.5 MB of memory, and
 * what a pod decides about hosts the gateway decides again, with the list.
 */
export function withoutPublicSuffixes(): Plugin {
  return {
    name: 'without-public-suffixes',
    setup(hooks) {
      hooks.onLoad({ filter: /\/src\/policy\/patterns\/public-suffixes\.ts$/ }, () => ({
        contents: 'export const sharedSuffixError = () => undefined;',
      }));
    },
  };
}

/** The runner's program is text that the supervisor sends; the bundle holds it linked. */
export function linkedRunner(program: string): Plugin {
  return {
    name: 'linked-runner',
    setup(hooks) {
      hooks.onLoad({ filter: /\/src\/sandbox\/program\.ts$/ }, () => ({
        contents: `export const linkRunnerProgram = async () => ${JSON.stringify(program)};`,
      }));
    },
  };
}

/** What runs in a confined process before its program: of each one, and of an agent program. */
export function linkedPreloads(file: string, texts: readonly string[]): Plugin {
  return {
    name: 'linked-preloads',
    setup(hooks) {
      hooks.onLoad({ filter: /\/src\/sandbox\/confined\/file-preload\.ts$/ }, () => ({
        contents: `export const filePreload = async () => ${JSON.stringify(file)};`,
      }));
      hooks.onLoad({ filter: /\/src\/acp\/process\/preloads\.ts$/ }, () => ({
        contents: `export const preloadTexts = async () => ${JSON.stringify(texts)};`,
      }));
    },
  };
}

/** The programs of the threads of the gateway are files of their own, beside those that the bundle loads when it needs them. */
export function linkedThread({ folder, start, file }: { folder: string; start: string; file: string }): Plugin {
  return {
    name: `linked-thread-${file}`,
    setup(hooks) {
      hooks.onLoad({ filter: new RegExp(`/src/${folder}/program\\.ts$`) }, () => ({
        contents: [
          "import { Worker } from 'node:worker_threads';",
          `const program = new URL(${JSON.stringify(`./${file}`)}, import.meta.url);`,
          `export const ${start} = (options) => new Worker(program, options);`,
        ].join('\n'),
      }));
    },
  };
}

/** The program of the thread that reads a page of the web is text in the file that the bundle loads with the first page. */
export function linkedPageProgram(program: string): Plugin {
  return {
    name: 'linked-page-program',
    setup(hooks) {
      hooks.onLoad({ filter: /\/src\/toolbox\/web\/page\/program\.ts$/ }, () => ({
        contents: [
          "import { Worker } from 'node:worker_threads';",
          `const program = ${JSON.stringify(program)};`,
          'export const startPageThread = (options) => new Worker(program, { ...options, eval: true });',
        ].join('\n'),
      }));
    },
  };
}

/**
 * Of the Kubernetes client the code uses `KubeConfig` alone. Its package also exports some thousand generated classes, which a bundle of
 * a dynamic import would keep.
 */
export function kubeConfigOnly(): Plugin {
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
export function lazyHttp(): Plugin {
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

/** What the code uses of undici, and the modules of the package that export it. */
export const UNDICI_EXPORTS: Readonly<Record<string, string>> = {
  Agent: 'dispatcher/agent.js',
  Pool: 'dispatcher/pool.js',
  buildConnector: 'core/connect.js',
};

/**
 * Of undici the code uses the agent, the pool and their connector. The index of the package also loads its fetch, its caches, WebSockets
 * and doubles for tests.
 */
export function undiciCore(): Plugin {
  const folder = join(ROOT, 'node_modules/undici/lib');
  const file = (path: string): string => JSON.stringify(join(folder, path));
  const contents = [
    `Object.assign(require(${file('dispatcher/dispatcher.js')}).prototype, require(${file('api/index.js')}));`,
    ...Object.entries(UNDICI_EXPORTS).map(([name, path]) => `exports.${name} = require(${file(path)});`),
  ].join('\n');
  return {
    name: 'undici-core',
    setup(hooks) {
      hooks.onResolve({ filter: /^undici$/ }, () => ({ path: 'undici', namespace: 'undici-core' }));
      hooks.onLoad({ filter: /.*/, namespace: 'undici-core' }, () => ({ contents, resolveDir: ROOT }));
    },
  };
}

const NOT_ASCII = /[^\0-\x7f]/;

/**
 * Escapes the characters of patterns that are not ASCII. esbuild escapes those of texts, not those of patterns, and V8 stores a file in
 * which one such character is left with two bytes per character.
 */
export function asciiPatterns(): Plugin {
  return {
    name: 'ascii-patterns',
    setup(hooks) {
      hooks.onLoad({ filter: /\/node_modules\/.*\.[cm]?js$/ }, async ({ path }) => {
        const text = await readFile(path, 'utf8');
        return NOT_ASCII.test(text) ? { contents: withAsciiPatterns(text) } : undefined;
      });
    },
  };
}

function withAsciiPatterns(text: string): string {
  const patterns: Token[] = [];
  const onToken = (token: Token): void => {
    if (token.type === tokTypes.regexp) patterns.push(token);
  };
  parse(text, { ecmaVersion: 'latest', sourceType: 'module', allowHashBang: true, onToken });
  let [escaped, end] = ['', 0];
  for (const pattern of patterns) {
    escaped += text.slice(end, pattern.start) + asciiOf(text.slice(pattern.start, pattern.end));
    end = pattern.end;
  }
  return escaped + text.slice(end);
}

/** Code units: a pattern with the flag `u` reads a pair of them as one character, as it reads the character itself. */
function asciiOf(pattern: string): string {
  return pattern.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
