import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface NodeBinary {
  /** Path of the binary. */
  readonly path: string;
  /** Without the `v`. */
  readonly version: string;
  /** `x64` or `arm64`. */
  readonly arch: string;
}

export interface ChecksumDeps {
  readonly fetch: typeof globalThis.fetch;
}

/** `unreachable`: nodejs.org did not answer, so nothing was compared. */
export type ChecksumResult = 'equal' | { readonly unreachable: string };

const DIST = 'https://nodejs.org/dist';
const MAX_BINARY_BYTES = 512 * 1024 * 1024;
/** A firewall may drop packets to nodejs.org without an answer. */
const FIRST_TIMEOUT_MS = 10_000;
const ARCHIVE_TIMEOUT_MS = 300_000;
const NOT_FOUND = 404;

/**
 * Compares the binary of a community package with the one that nodejs.org publishes: the archive must have the digest of SHASUMS256.txt, and the
 * binary in it must be equal byte by byte. Throws when one differs. The release lists digests of archives only, so the archive is downloaded.
 */
export async function compareWithRelease(binary: NodeBinary, { fetch }: ChecksumDeps): Promise<ChecksumResult> {
  const { version, arch } = binary;
  const name = `node-v${version}-linux-${arch}`;
  const download = async (file: string, timeoutMs: number): Promise<Buffer | undefined> => {
    const response = await fetch(`${DIST}/v${version}/${file}`, { signal: AbortSignal.timeout(timeoutMs) });
    if (response.status === NOT_FOUND) return undefined;
    if (!response.ok) throw new Error(`${DIST}/v${version}/${file}: HTTP ${response.status}`);
    return Buffer.from(await response.arrayBuffer());
  };
  let sums: Buffer | undefined;
  let archive: Buffer | undefined;
  try {
    sums = await download('SHASUMS256.txt', FIRST_TIMEOUT_MS);
    archive = await download(`${name}.tar.gz`, ARCHIVE_TIMEOUT_MS);
  } catch (error) {
    return { unreachable: causeOf(error) };
  }
  if (sums === undefined || archive === undefined) {
    throw new Error(`nodejs.org has no release ${name}; ship nothing, and report the package ${binary.path}`);
  }
  const expected = digestIn(sums.toString('utf8'), `${name}.tar.gz`);
  const actual = createHash('sha256').update(archive).digest('hex');
  if (actual !== expected) {
    throw new Error(
      `${name}.tar.gz has sha256 ${actual}, and SHASUMS256.txt of nodejs.org has ${expected ?? 'none'}; ship nothing`,
    );
  }
  const released = await extract(archive, `${name}/bin/node`);
  if (!released.equals(await readFile(binary.path))) {
    throw new Error(
      `${binary.path} is not bin/node of ${name}.tar.gz from nodejs.org; ship nothing, and report the package`,
    );
  }
  return 'equal';
}

/** The digest of a file in the text of SHASUMS256.txt. */
function digestIn(sums: string, file: string): string | undefined {
  const line = sums.split('\n').find((text) => text.endsWith(`  ${file}`));
  const digest = line?.slice(0, 64) ?? '';
  return /^[0-9a-f]{64}$/.test(digest) ? digest : undefined;
}

async function extract(archive: Buffer, member: string): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-node-'));
  try {
    const file = join(folder, 'node.tar.gz');
    await writeFile(file, archive);
    const options = { encoding: 'buffer', maxBuffer: MAX_BINARY_BYTES } as const;
    const { stdout } = await promisify(execFile)('tar', ['-xzOf', file, member], options);
    return stdout;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The message of `fetch failed` names no cause. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'an unknown failure';
  return error.cause instanceof Error ? error.cause.message : error.message;
}
