import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';

const ROOT = resolve(import.meta.dirname, '../..');

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly link?: boolean;
}
type Lock = Readonly<Record<string, LockedPackage>>;
type Manifest = Readonly<Record<string, Readonly<Record<string, string>> | undefined>>;

function read(file: string): unknown {
  return JSON.parse(readFileSync(join(ROOT, file), 'utf8'));
}

/** The packages of a lock file, without the project itself. */
function packagesOf(file: string): Lock {
  const { packages } = read(file) as { packages: Lock };
  return Object.fromEntries(Object.entries(packages).filter(([path]) => path !== ''));
}

/** What differs between the dependencies of a manifest and a lock file. `npm install` mends such a difference silently. */
function lockProblems(manifest: Manifest, lock: Lock): string[] {
  const kinds = ['dependencies', 'devDependencies', 'optionalDependencies'] as const;
  const declared = kinds.flatMap((kind) => Object.entries(manifest[kind] ?? {}));
  const differing = declared.filter(([name, version]) => lock[`node_modules/${name}`]?.version !== version);
  const unpinned = Object.entries(lock).filter(([, entry]) => !/^sha512-[\w+/]+=*$/.test(entry.integrity ?? ''));
  return [
    ...differing.map(([name, version]) => `${name} ${version} is not locked at this version`),
    ...unpinned.map(([path]) => `${path} has no sha512`),
  ];
}

/** Installed packages that the lock file does not have, or has with another digest. */
function installedProblems(installed: Lock, lock: Lock): string[] {
  const foreign = Object.entries(installed).filter(([path, { integrity }]) => lock[path]?.integrity !== integrity);
  return foreign.map(([path, { version }]) => `${path} ${version} is not the locked package`);
}

describe('the lock file', () => {
  const lock = packagesOf('package-lock.json');

  it('the lock file has every dependency at its exact version, and a sha512 for every package', () => {
    assert.ok(Object.keys(lock).length > 100);
    assert.deepEqual(lockProblems(read('package.json') as Manifest, lock), []);
  });

  it('every installed package is the one of the lock file', () => {
    const installed = packagesOf('node_modules/.package-lock.json');
    assert.ok(Object.keys(installed).length > 100);
    assert.deepEqual(installedProblems(installed, lock), []);
  });

  it('the check reports a missing, a differing, an unpinned and a foreign package', () => {
    const pinned = { version: '1.0.0', integrity: 'sha512-AAAA' };
    const locked = { 'node_modules/a': pinned, 'node_modules/b': { version: '1.0.0' } };
    assert.deepEqual(lockProblems({ dependencies: { a: '1.0.1' }, devDependencies: { c: '2.0.0' } }, locked), [
      'a 1.0.1 is not locked at this version',
      'c 2.0.0 is not locked at this version',
      'node_modules/b has no sha512',
    ]);
    const installed = { 'node_modules/a': { ...pinned, integrity: 'sha512-BBBB' }, 'node_modules/d': pinned };
    assert.deepEqual(installedProblems(installed, locked), [
      'node_modules/a 1.0.0 is not the locked package',
      'node_modules/d 1.0.0 is not the locked package',
    ]);
  });
});
