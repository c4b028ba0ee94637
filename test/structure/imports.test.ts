import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { describe, it } from 'node:test';

const SRC = resolve(import.meta.dirname, '../../src');

/** The modules that each module may import, besides itself. */
const FOUNDATION = ['lib', 'telemetry'];
const PORTS = ['bus', 'models', 'ledger', 'audit', 'sandbox'];
const TOOLS_MAY = [...FOUNDATION, 'schedule', 'events', 'api', 'net', ...PORTS, 'policy'];
const ENGINE_MAY = [...TOOLS_MAY, 'tools', 'forge', 'discovery', 'skills', 'tempering', 'agent', 'toolbox'];
/** Cluster roles may import all modules below them, but not each other. */
const ROLES_MAY = [
  ...ENGINE_MAY,
  'engine',
  'kube',
  'nats',
  'gateway-api',
  'tool-audit',
  'identity',
  'approvals',
  'connections',
  'capabilities',
  'review',
];
const MODULES: Record<string, readonly string[]> = {
  lib: [],
  telemetry: ['lib'],
  schedule: ['lib'],
  events: ['lib'],
  api: ['lib', 'schedule', 'events'],
  kube: FOUNDATION,
  net: ['lib'],
  approvals: ['lib', 'api'],
  bus: FOUNDATION,
  ledger: FOUNDATION,
  audit: FOUNDATION,
  models: [...FOUNDATION, 'net', 'ledger'],
  sandbox: [...FOUNDATION, 'api', 'net'],
  policy: ['lib', 'events', 'api'],
  tools: TOOLS_MAY,
  forge: [...TOOLS_MAY, 'tools'],
  discovery: [...TOOLS_MAY, 'tools'],
  tempering: [...TOOLS_MAY, 'tools', 'forge', 'discovery'],
  skills: ['lib', 'api'],
  agent: [...TOOLS_MAY, 'tools', 'discovery', 'skills'],
  mcp: [...TOOLS_MAY, 'tools'],
  acp: [...TOOLS_MAY, 'tools', 'agent', 'mcp'],
  git: ['lib', 'net'],
  toolbox: [...TOOLS_MAY, 'tools', 'git'],
  engine: ENGINE_MAY,
  'tool-audit': [...ENGINE_MAY, 'engine'],
  a2a: [...FOUNDATION, 'api', 'bus', 'gateway-api'],
  standalone: [...ENGINE_MAY, 'a2a', 'acp', 'mcp', 'engine', 'tool-audit'],
  nats: [...ENGINE_MAY, 'engine', 'tool-audit'],
  'gateway-api': [...ENGINE_MAY, 'tool-audit'],
  'gateway-client': [...ENGINE_MAY, 'engine', 'gateway-api', 'git'],
  identity: [...FOUNDATION, 'kube', 'api'],
  connections: ['lib', 'net', 'git'],
  capabilities: ['lib', 'api', 'tools', 'discovery', 'connections'],
  oci: ['lib', 'net'],
  review: ['lib', 'api', 'net', 'audit', 'approvals', 'tempering', 'tool-audit', 'connections', 'git'],
  operator: ROLES_MAY,
  gateway: [...ROLES_MAY, 'a2a', 'gateway-client', 'mcp', 'git'],
  pod: [...ROLES_MAY, 'gateway-client', 'acp'],
  egress: ['lib', 'telemetry', 'api', 'net', 'kube', 'gateway-api', 'gateway-client'],
  interop: ['lib', 'events', 'api', 'policy'],
};

/** The modules that may import each npm package; `*` for all. Node's built-in modules are not restricted. */
const PACKAGES: Record<string, readonly string[]> = {
  typebox: ['a2a', 'api', 'capabilities', 'connections', 'tools', 'gateway-api', 'gateway', 'egress', 'operator'],
  yaml: ['api', 'models', 'tempering', 'review', 'cli', 'gateway', 'egress', 'operator'],
  ajv: ['api', 'tools'],
  'ajv-formats': ['tools'],
  re2js: ['tools'],
  acorn: ['forge', 'tempering', 'review'],
  'acorn-walk': ['forge'],
  'isolated-vm': ['sandbox'],
  stemmer: ['discovery'],
  graphology: ['discovery'],
  '@qdrant/js-client-rest': ['discovery'],
  // In `acp` only its tests, as clients of the endpoint.
  openai: ['models', 'acp'],
  '@anthropic-ai/sdk': ['models', 'acp'],
  undici: ['net', 'kube', 'gateway-client'],
  'ipaddr.js': ['net'],
  pino: ['telemetry'],
  'prom-client': ['telemetry'],
  '@opentelemetry/api': ['*'],
  '@opentelemetry/sdk-trace': ['telemetry'],
  '@opentelemetry/resources': ['telemetry'],
  '@opentelemetry/exporter-trace-otlp-http': ['telemetry'],
  '@kubernetes/client-node': ['kube'],
  'lru-cache': [
    'discovery',
    'events',
    'kube',
    'lib',
    'net',
    'gateway',
    'egress',
    'identity',
    'nats',
    'operator',
    'tools',
  ],
  jose: ['identity'],
  '@nats-io/transport-node': ['nats'],
  '@nats-io/jetstream': ['nats'],
  '@nats-io/nkeys': ['operator'],
  '@peculiar/x509': ['operator'],
  htmlparser2: ['toolbox'],
  pg: ['toolbox'],
  'pg-cursor': ['toolbox'],
  fastify: ['gateway'],
  '@fastify/type-provider-typebox': ['gateway'],
  '@fastify/swagger': ['gateway'],
  '@fastify/under-pressure': ['gateway'],
  commander: ['cli'],
  'p-limit': ['net', 'nats', 'cli'],
  croner: ['schedule'],
  'smol-toml': ['interop'],
  ulid: ['lib'],
  tldts: ['policy'],
  'fast-check': ['*'],
  // Only its tests, which compare decisions.
  '@cedar-policy/cedar-wasm': ['policy'],
  // Only its tests, which build a bundle.
  esbuild: ['cli'],
  '@agentclientprotocol/sdk': ['acp', 'cli'],
  '@modelcontextprotocol/server': ['mcp'],
  '@modelcontextprotocol/client': ['mcp'],
  '@a2a-js/sdk': ['a2a', 'gateway', 'standalone'],
};

/** The command line may import every module. */
const UNRESTRICTED = 'cli';

interface Import {
  file: string;
  module: string;
  target: string;
}

async function sourceFiles(): Promise<string[]> {
  const entries = await readdir(SRC, { recursive: true });
  return entries.filter((name) => name.endsWith('.ts')).map((name) => join(SRC, name));
}

async function importsOf(file: string): Promise<Import[]> {
  const text = await readFile(file, 'utf8');
  const module = relative(SRC, file).split(sep)[0] ?? '';
  const found = text.matchAll(
    /(?:^|\n)\s*(?:import|export)\s[^'";]*?from\s+'([^']+)'|import\(\s*'([^']+)'\s*\)|(?:^|\n)import\s+'([^']+)'/g,
  );
  return [...found].map((match) => ({
    file: relative(SRC, file),
    module,
    target: match[1] ?? match[2] ?? match[3] ?? '',
  }));
}

function targetModule(entry: Import): string {
  return relative(SRC, resolve(dirname(join(SRC, entry.file)), entry.target)).split(sep)[0] ?? '';
}

function packageOf(target: string): string {
  return target
    .split('/')
    .slice(0, target.startsWith('@') ? 2 : 1)
    .join('/');
}

describe('the structure of src', () => {
  it('every module of the table has a folder, and every module that it may import too', async () => {
    const entries = await readdir(SRC, { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    assert.deepEqual(Object.keys(MODULES).sort(), folders.filter((name) => name !== UNRESTRICTED).sort());
    const allowed = Object.values(MODULES).flat();
    assert.deepEqual(
      allowed.filter((name) => !folders.includes(name)),
      [],
    );
  });

  it('every package of the table is imported by each module that the table allows', async () => {
    const all = (await Promise.all((await sourceFiles()).map(importsOf))).flat();
    const used = new Set(all.map(({ module, target }) => `${module} ${packageOf(target)}`));
    const unused = Object.entries(PACKAGES).flatMap(([name, modules]) =>
      modules
        .filter((module) =>
          module === '*' ? !all.some(({ target }) => packageOf(target) === name) : !used.has(`${module} ${name}`),
        )
        .map((module) => `${module} does not import ${name}`),
    );
    assert.deepEqual(unused, []);
  });

  it('every module is in the table and imports only modules that the table allows', async () => {
    const wrong: string[] = [];
    for (const file of await sourceFiles()) {
      for (const entry of await importsOf(file)) {
        // package.json has the version.
        if (!entry.target.startsWith('.') || entry.target.endsWith('/package.json')) continue;
        const target = targetModule(entry);
        // Unit tests may import shared helpers from test/.
        if (target === '..' && entry.file.endsWith('.test.ts')) continue;
        if (entry.module === UNRESTRICTED || target === entry.module) continue;
        if (!(MODULES[entry.module] ?? []).includes(target)) wrong.push(`${entry.file} imports ${target}`);
      }
    }
    assert.deepEqual(wrong, []);
  });

  it('npm packages are imported only by modules that the table allows', async () => {
    const wrong: string[] = [];
    for (const file of await sourceFiles()) {
      for (const entry of await importsOf(file)) {
        if (entry.target.startsWith('.') || entry.target.startsWith('node:')) continue;
        const name = packageOf(entry.target);
        const modules = PACKAGES[name] ?? [];
        if (!modules.includes('*') && !modules.includes(entry.module)) wrong.push(`${entry.file} imports ${name}`);
      }
    }
    assert.deepEqual(wrong, []);
  });

  it('the import parser finds known imports', async () => {
    const files = await sourceFiles();
    const all = (await Promise.all(files.map(importsOf))).flat();
    assert.ok(all.some((entry) => entry.target === 'typebox' && entry.module === 'api'));
    assert.ok(all.some((entry) => entry.module === 'models' && targetModule(entry) === 'lib'));
  });
});
