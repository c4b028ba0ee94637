import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { on } from 'node:events';
import { access, glob, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { build } from 'esbuild';
import { bundle, bundleThreads, writeDispatcher } from '../../sandbox-image/bundle.ts';
import { UNDICI_EXPORTS, undiciCore } from '../../sandbox-image/bundle-plugins.ts';
import { POD_PATHS, POD_USERS } from '../../src/api/cluster.ts';
import { socketPaths } from '../../src/pod/socket/socket-folder.ts';
import { packMemory } from '../../src/gateway/memory-scan/packed-memory.ts';
import { anArtifact } from '../../src/tempering/tempering.testing.ts';

const ROOT = join(import.meta.dirname, '../..');
const ROLES = ['agent', 'verifier', 'gateway', 'egress', 'operator', 'sandbox', 'mcp-bridge'] as const;

describe('the bundles of the images', { timeout: 600_000 }, () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-bundles-'));
    for (const name of [...ROLES, 'cli'] as const) await bundle(name, folder);
    await bundleThreads(folder);
    await writeDispatcher(folder, ROLES);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  const start = (args: readonly string[], options: readonly string[] = []) =>
    spawnSync(process.execPath, [...options, join(folder, 'temper.mjs'), ...args], {
      encoding: 'utf8',
      timeout: 300_000,
    });

  const filesOf = async (name: string): Promise<string[]> => {
    const files: string[] = [];
    for await (const file of glob([`${name}.mjs`, `${name}/*.mjs`], { cwd: folder })) files.push(file);
    return files;
  };
  const sourcesOf = async (file: string) =>
    (JSON.parse(await readFile(join(folder, `${file}.map`), 'utf8')) as { sources: string[] }).sources;

  it('each file of a bundle has its source map beside it', async () => {
    for (const name of [...ROLES, 'cli']) {
      const files = await filesOf(name);
      assert.ok(files.length > 1, name);
      for (const file of files) await access(join(folder, `${file}.map`));
    }
  });

  it('every file is ASCII: V8 stores one with any other character with two bytes per character', async () => {
    for await (const file of glob(['**/*.mjs', '**/*.cjs'], { cwd: folder })) {
      const [found] = /[^\0-\x7f].{0,40}/.exec(await readFile(join(folder, file), 'utf8')) ?? [];
      assert.equal(found, undefined, `${file} has other characters`);
    }
  });

  it('a pattern with other characters matches the same texts in a bundle', async () => {
    const files = await filesOf('gateway');
    const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
    // A duration of the NATS library.
    assert.ok(texts.some((text) => text.includes('us|\\u00b5s|ms')));
  });

  it('a bundle has the modules that run in a confined process before its program as text', async () => {
    for (const name of ['cli', 'sandbox']) {
      const texts = await Promise.all((await filesOf(name)).map((file) => readFile(join(folder, file), 'utf8')));
      // Long strings are broken at the end of a line.
      const text = texts.join('\n').replaceAll('\\\n', '');
      assert.ok(text.includes('ERR_ACCESS_DENIED'), name);
      const read = /"(?:missing-files|agent-fetch|agent-net)\.ts"/.exec(text)?.[0];
      assert.equal(read, undefined, `${name} reads a file that no image has`);
    }
  });

  it('no bundle holds the parts of undici that no code uses', async () => {
    for (const name of [...ROLES, 'cli']) {
      const sources = (await Promise.all((await filesOf(name)).map(sourcesOf))).flat();
      const unused = sources.filter((source) =>
        /undici\/lib\/(?:mock|cache|interceptor|web\/websocket)\//.test(source),
      );
      assert.deepEqual(unused, [], name);
    }
  });

  it('the bundles have what the code imports from undici, and nothing else', async () => {
    const imported = new Set<string>();
    for await (const file of glob('src/**/*.ts', { cwd: ROOT })) {
      const [, list = ''] = /^import \{([^}]*)\} from 'undici';$/m.exec(await readFile(join(ROOT, file), 'utf8')) ?? [];
      for (const name of list.split(',').map((part) => part.trim()))
        if (name !== '' && !name.startsWith('type ')) imported.add(name);
    }
    assert.deepEqual([...imported].sort(), Object.keys(UNDICI_EXPORTS).sort());
  });

  it('a pool of a bundle sends requests over connections that the code opens', async () => {
    const program = `
      import { Pool } from 'undici';
      import { createServer } from 'node:http';
      import { connect } from 'node:net';
      const server = createServer((request, response) => response.end(request.url)).listen(0, '127.0.0.1', async () => {
        const { port } = server.address();
        const open = (_ignored, done) => { const socket = connect(port, '127.0.0.1', () => done(null, socket)); };
        const pool = new Pool('http://elsewhere.example.com', { connect: open, connections: 1, pipelining: 1 });
        const { body } = await pool.request({ path: '/asked', method: 'GET' });
        process.stdout.write(await body.text());
        await pool.close();
        server.close();
      });`;
    const banner = {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    };
    const outfile = join(folder, 'pool.mjs');
    const stdin = { contents: program, resolveDir: ROOT };
    await build({ stdin, outfile, banner, bundle: true, platform: 'node', format: 'esm', plugins: [undiciCore()] });
    const { stdout, stderr } = spawnSync(process.execPath, [outfile], { encoding: 'utf8', timeout: 60_000 });
    assert.deepEqual([stdout, stderr], ['/asked', '']);
  });

  for (const [role, start, late] of [
    [
      'gateway',
      'src/gateway/gateway.ts',
      /node_modules\/(?:openai|@anthropic-ai|@kubernetes|@modelcontextprotocol|zod|@a2a-js|pg)\//,
    ],
    ['operator', 'src/operator/run.ts', /node_modules\/(?:@peculiar|@kubernetes)\//],
    ['agent', 'src/pod/agent/serve.ts', /node_modules\/(?:@agentclientprotocol|@modelcontextprotocol|zod)\//],
  ] as const) {
    it(`the ${role} loads its large packages when it needs them, and not at its start`, async () => {
      const sources = new Map<string, string[]>();
      for (const file of await filesOf(role)) sources.set(file, await sourcesOf(file));
      assert.ok(
        [...sources.values()].flat().some((source) => late.test(source)),
        'the bundle has none of them',
      );
      const loaded = [...sources.keys()].filter((file) => sources.get(file)?.includes(start));
      assert.equal(loaded.length, 1);
      for (const file of loaded) {
        assert.deepEqual(
          sources.get(file)?.filter((source) => late.test(source)),
          [],
          file,
        );
        const text = await readFile(join(folder, file), 'utf8');
        const imports = text.matchAll(/(?:from|import)\s*"\.\/([^"]+)"/g);
        for (const [, next = ''] of imports) {
          const path = join(dirname(file), next);
          if (!loaded.includes(path)) loaded.push(path);
        }
      }
      assert.ok(loaded.length > 1, 'the pattern finds imports');
    });
  }

  for (const role of ['gateway', 'operator'] as const) {
    it(`the ${role} bundle starts its role, which reports a wrong configuration by its code`, () => {
      // A file with other fields.
      const config = join(import.meta.dirname, '../../package.json');
      const { status, stdout } = start(['serve', role, '--config', config]);
      assert.equal(status, 1, stdout);
      const line = JSON.parse(stdout) as { role: string; code: string };
      assert.deepEqual([line.role, line.code], [role, 'TEMPER_CONFIGURATION_INVALID']);
    });
  }

  it('the gateway bundle starts the program of its threads, which vets a tool', async () => {
    const starting: string[] = [];
    for (const file of await filesOf('gateway')) {
      const text = await readFile(join(folder, file), 'utf8');
      assert.ok(!text.includes('vetting/worker.ts'), `${file} refers to a file that no image has`);
      if (/new URL\("\.\/vetting\.cjs",\s*import\.meta\.url\)/.test(text)) starting.push(file);
    }
    assert.equal(starting.length, 1);
    const worker = new Worker(join(folder, dirname(starting[0] ?? ''), 'vetting.cjs'));
    const messages = on(worker, 'message') as AsyncIterableIterator<[unknown]>;
    assert.deepEqual((await messages.next()).value, ['ready']);
    worker.postMessage(JSON.stringify(anArtifact('fetch')));
    const [vetting] = (await messages.next()).value as [{ shape: { message: string }[] }];
    assert.match(vetting.shape[0]?.message ?? '', /reserved/);
    await worker.terminate();
  });

  it('the gateway bundle starts the program of its other thread, which searches a memory', async () => {
    const starting: string[] = [];
    for (const file of await filesOf('gateway')) {
      const text = await readFile(join(folder, file), 'utf8');
      assert.ok(!text.includes('memory-scan/worker.ts'), `${file} refers to a file that no image has`);
      if (/new URL\("\.\/memory-scan\.cjs",\s*import\.meta\.url\)/.test(text)) starting.push(file);
    }
    assert.equal(starting.length, 1);
    const worker = new Worker(join(folder, dirname(starting[0] ?? ''), 'memory-scan.cjs'));
    const messages = on(worker, 'message') as AsyncIterableIterator<[unknown]>;
    assert.deepEqual((await messages.next()).value, ['ready']);
    const own = [Buffer.from(JSON.stringify({ key: 'plan', value: 'west', tainted: false }))];
    worker.postMessage(packMemory('west', { own, shared: [] }));
    assert.deepEqual((await messages.next()).value, [[{ key: 'plan', tainted: false, scope: 'own', index: 0 }]]);
    await worker.terminate();
  });

  for (const role of ['agent', 'sandbox'] as const) {
    it(`the ${role} bundle holds the options of its role`, () => {
      const { status, stdout, stderr } = start(['serve', role, '--help']);
      assert.equal(status, 0, stderr);
      assert.match(stdout, /--workspace <folder>/);
    });
  }

  it('the gateway, the operator and the command line hold the Public Suffix List, and the bundles of pods do not', async () => {
    for (const name of [...ROLES, 'cli']) {
      const sources = (await Promise.all((await filesOf(name)).map(sourcesOf))).flat();
      const lists = sources.filter((source) => source.endsWith('tldts/src/data/trie.ts'));
      assert.equal(lists.length, ['gateway', 'operator', 'cli'].includes(name) ? 1 : 0, name);
    }
  });

  it('the bundles of a pod hold no schema library: they use the types of the API, not its schemas', async () => {
    for (const role of ['agent', 'sandbox'] as const) {
      const sources = (await Promise.all((await filesOf(role)).map(sourcesOf))).flat();
      assert.ok(sources.length > 10, role);
      const schemas = sources.filter((source) => /node_modules\/typebox\/|gateway-api\/.*-schemas?\.ts$/.test(source));
      assert.deepEqual(schemas, [], role);
    }
  });

  for (const image of ['Containerfile', 'sandbox-image/Containerfile', 'sandbox-image/toolchain.Containerfile']) {
    it(`the entry point in ${image} starts its bundle with a small young generation`, async () => {
      const text = await readFile(join(import.meta.dirname, '../..', image), 'utf8');
      assert.match(text, /^ENV .*\bMALLOC_ARENA_MAX=2$/m);
      const [, entry = ''] = /^ENTRYPOINT (.*)$/m.exec(text) ?? [];
      const words = JSON.parse(entry) as string[];
      const [, ...options] = words.slice(words.indexOf('/usr/local/bin/node')).slice(0, -1);
      assert.ok(options.includes('--max-semi-space-size=2'), entry);
      const program = join(folder, basename(words.at(-1) ?? ''));
      const { status, stderr } = spawnSync(process.execPath, [...options, program, 'version'], { encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    });
  }

  for (const image of ['sandbox-image/Containerfile', 'sandbox-image/toolchain.Containerfile']) {
    it(`the entry point in ${image} starts the sandbox again at the socket of the agent container`, async () => {
      const text = await readFile(join(ROOT, image), 'utf8');
      const [, entry = ''] = /^ENTRYPOINT (.*)$/m.exec(text) ?? [];
      const launcher = [
        '/usr/local/bin/launcher',
        'service',
        socketPaths(POD_PATHS.run).socket,
        String(POD_USERS.agent),
      ];
      assert.deepEqual((JSON.parse(entry) as string[]).slice(0, launcher.length), launcher);
    });
  }

  it('the command line bundle reads and checks manifests', () => {
    const { status, stdout } = start(['validate', '-f', 'manifests/samples']);
    assert.equal(status, 0, stdout);
  });

  it('a stack trace names the source file and line', () => {
    const failing = "process.stdout.write = () => { throw new Error('the pipe is broken') };";
    const { stderr } = start(['version'], ['--import', `data:text/javascript,${encodeURIComponent(failing)}`]);
    assert.match(stderr, /TEMPER_INTERNAL: the pipe is broken/);
    assert.match(stderr, /at .*\(src\/cli\/program\.ts:\d+:\d+\)/);
    assert.doesNotMatch(stderr, /\.mjs:\d+:\d+/);
  });
});
