/**
 * Lays out what goes into the two images, as folders that their Containerfiles copy: `<out>/temper` and `<out>/temper-sandbox`.
 * Production packages only, for this platform only; of the sources, what the roles of the image run. Usage: stage.ts <out>
 */
import { cp, mkdir, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '..');
const APP = 'app';
/** What the runners are made of is read as text, so that no import leads there. */
const SANDBOX_ENTRIES = ['src/cli/main.ts', 'src/cli/verbs/serve-sandbox.ts', 'src/sandbox/runner/main.ts'];
/** Parts of a package that are there to build it. */
const BUILD_PARTS =
  /\/node_modules\/isolated-vm\/(?:src|vendor|native-example|scripts|[^/]+\.tgz|Dockerfile[^/]*)(?:\/|$)/;
/** For people who read and debug the package. */
const UNUSED = /\.(?:map|d\.[cm]?ts)$/;
const OTHER_PREBUILDS = new RegExp(`/prebuilds/(?!${process.platform}-${process.arch}(?:/|$))[^/]+`);

interface LockedPackage {
  dev?: boolean;
  os?: string[];
  cpu?: string[];
  dependencies?: Record<string, string>;
}

type Lock = Map<string, LockedPackage>;

async function readLock(): Promise<Lock> {
  const text = await readFile(join(ROOT, 'package-lock.json'), 'utf8');
  const { packages } = JSON.parse(text) as { packages: Record<string, LockedPackage> };
  const suits = ({ dev, os, cpu }: LockedPackage): boolean =>
    dev !== true &&
    (os ?? [process.platform]).includes(process.platform) &&
    (cpu ?? [process.arch]).includes(process.arch);
  return new Map(Object.entries(packages).filter(([path, entry]) => path !== '' && suits(entry)));
}

/** The places of these packages and of all they need, as Node would find them. */
function closureOf(lock: Lock, names: Iterable<string>): Set<string> {
  const found = new Set<string>();
  const add = (from: string, name: string): void => {
    let folder = from;
    for (;;) {
      const place = folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
      const entry = lock.get(place);
      if (entry !== undefined) {
        if (found.has(place)) return;
        found.add(place);
        for (const dependency of Object.keys(entry.dependencies ?? {})) add(place, dependency);
        return;
      }
      // An optional one that is not for this platform.
      if (folder === '') return;
      folder = folder.includes('/node_modules/') ? folder.slice(0, folder.lastIndexOf('/node_modules/')) : '';
    }
  };
  for (const name of names) add('', name);
  return found;
}

/** The modules that are loaded for these, and the packages they import. What is imported for its type alone is not loaded. */
async function modulesOf(entries: readonly string[]): Promise<{ files: Set<string>; packages: Set<string> }> {
  const files = new Set<string>();
  const packages = new Set<string>();
  const visit = async (file: string): Promise<void> => {
    if (files.has(file)) return;
    files.add(file);
    const text = await readFile(join(ROOT, file), 'utf8');
    const imports = text.matchAll(
      /(?:^|\n)(?:import|export)\s+(?!type\s)[^;'"]*?from '([^']+)'|(?:^|\n)import '([^']+)'/g,
    );
    for (const [, from, bare] of imports) {
      const target = from ?? bare ?? '';
      if (target.startsWith('.')) await visit(relative(ROOT, resolve(ROOT, dirname(file), target)));
      else if (!target.startsWith('node:')) packages.add(nameOf(target));
    }
  };
  for (const entry of entries) await visit(entry);
  return { files, packages };
}

function nameOf(target: string): string {
  return target
    .split('/')
    .slice(0, target.startsWith('@') ? 2 : 1)
    .join('/');
}

async function copyPackages(places: Iterable<string>, app: string): Promise<void> {
  for (const place of places) {
    const source = join(ROOT, place);
    // Packages inside it are places of their own.
    const wanted = (path: string): boolean =>
      !path.slice(source.length).includes('/node_modules') &&
      [BUILD_PARTS, OTHER_PREBUILDS, UNUSED].every((unwanted) => !unwanted.test(path));
    await cp(source, join(app, place), { recursive: true, filter: wanted });
  }
}

async function stageBoth(out: string): Promise<void> {
  const lock = await readLock();
  const node = dirname(createRequire(join(ROOT, 'package.json')).resolve(`node-linux-${process.arch}/package.json`));
  const isRuntime = (place: string): boolean => place.startsWith('node_modules/node-');

  const temper = join(out, 'temper');
  const tests = /\.test(?:ing)?\.ts$/;
  await cp(join(ROOT, 'src'), join(temper, APP, 'src'), { recursive: true, filter: (path) => !tests.test(path) });
  await cp(join(ROOT, 'crds'), join(temper, APP, 'crds'), { recursive: true });
  await copyPackages(
    [...lock.keys()].filter((place) => !isRuntime(place)),
    join(temper, APP),
  );

  const sandbox = join(out, 'temper-sandbox');
  const { files, packages } = await modulesOf(SANDBOX_ENTRIES);
  for (const file of files) await cp(join(ROOT, file), join(sandbox, APP, file), { recursive: true });
  await copyPackages(closureOf(lock, [...packages, 'isolated-vm']), join(sandbox, APP));

  for (const image of [temper, sandbox]) {
    await cp(join(ROOT, 'package.json'), join(image, APP, 'package.json'));
    await mkdir(join(image, 'usr/local/bin'), { recursive: true });
    await cp(join(node, 'bin/node'), join(image, 'usr/local/bin/node'));
    await cp(join(out, 'launcher'), join(image, 'usr/local/bin/launcher'));
  }
}

const out = resolve(process.argv[2] ?? 'dist/images');
for (const image of ['temper', 'temper-sandbox']) await rm(join(out, image), { recursive: true, force: true });
await stageBoth(out);
