/**
 * Creates the contents of the two images as folders that their Containerfiles copy: `<out>/temper` and `<out>/temper-sandbox`.
 * A bundle for each role the image runs, and the native packages of this platform, which no bundle can hold. Node itself is compared with the
 * release of nodejs.org: NODE_RELEASE=required makes a release that cannot be reached an error, and NODE_RELEASE=skip, for tests, compares
 * nothing. Usage: stage.ts <out>
 */
import { cp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { bundle, bundleThreads, writeDispatcher } from './bundle.ts';
import { compareWithRelease } from './node-checksum.ts';
import { stageLibraries } from './libraries.ts';
import { stagePrograms } from './programs.ts';

const ROOT = resolve(import.meta.dirname, '..');
const APP = 'app';
const TEMPER_BUNDLES = ['agent', 'verifier', 'gateway', 'egress', 'operator', 'cli'] as const;
/** The second one is for the images of MCP servers, which are built from this one. */
const SANDBOX_BUNDLES = ['sandbox', 'mcp-bridge'] as const;
const NATIVE_PACKAGES = ['isolated-vm'];
/** Files that are needed only to build a package. */
const BUILD_PARTS =
  /\/node_modules\/isolated-vm\/(?:src|vendor|native-example|scripts|[^/]+\.tgz|Dockerfile[^/]*)(?:\/|$)/;
/** Files that are needed only to read and debug a package. */
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

async function copyPackages(paths: Iterable<string>, app: string): Promise<void> {
  for (const path of paths) {
    const source = join(ROOT, path);
    // Nested packages have their own entries.
    const isIncluded = (file: string): boolean =>
      !file.slice(source.length).includes('/node_modules') &&
      [BUILD_PARTS, OTHER_PREBUILDS, UNUSED].every((unwanted) => !unwanted.test(file));
    await cp(source, join(app, path), { recursive: true, filter: isIncluded });
  }
}

/** Stops when the binary differs from the release. Without a connection to nodejs.org it says so, unless NODE_RELEASE=required. */
async function checkNode(folder: string): Promise<void> {
  if (process.env['NODE_RELEASE'] === 'skip') return;
  const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string };
  const binary = { path: join(folder, 'bin/node'), version, arch: process.arch };
  const result = await compareWithRelease(binary, { fetch: globalThis.fetch });
  if (result === 'equal') {
    console.log(`node ${version}: equal to the release of nodejs.org`);
    return;
  }
  const message = `node ${version}: not compared with the release of nodejs.org: ${result.unreachable}`;
  if (process.env['NODE_RELEASE'] === 'required') throw new Error(`${message}; NODE_RELEASE=required`);
  console.warn(`${message}; it is the package with the sha512 of package-lock.json`);
}

async function stageBoth(out: string): Promise<void> {
  const lock = await readLock();
  const node = dirname(createRequire(join(ROOT, 'package.json')).resolve(`node-linux-${process.arch}/package.json`));
  await checkNode(node);
  const temper = join(out, 'temper');
  for (const name of TEMPER_BUNDLES) await bundle(name, join(temper, APP));
  await bundleThreads(join(temper, APP));
  await writeDispatcher(join(temper, APP), TEMPER_BUNDLES);
  // `temper tool check` and `temper run` need the engine of the sandbox.
  await copyPackages(closureOf(lock, NATIVE_PACKAGES), join(temper, APP));

  const sandbox = join(out, 'temper-sandbox');
  for (const name of SANDBOX_BUNDLES) await bundle(name, join(sandbox, APP));
  await copyPackages(closureOf(lock, NATIVE_PACKAGES), join(sandbox, APP));

  const programs = { node: join(node, 'bin/node'), launcher: join(out, 'launcher') };
  for (const image of [temper, sandbox]) await stageLibraries(programs.node, image);
  await stagePrograms(programs, join(temper, 'usr/local/bin'));
  await stagePrograms(programs, join(sandbox, 'usr/local/bin'), { unreadableNode: true });
}

const out = resolve(process.argv[2] ?? 'dist/images');
for (const image of ['temper', 'temper-sandbox']) await rm(join(out, image), { recursive: true, force: true });
await stageBoth(out);
