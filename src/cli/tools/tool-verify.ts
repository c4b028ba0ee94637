import type { Digest } from '../../lib/canonical.ts';
import { inspectTool } from '../../forge/forge.ts';
import { standaloneContext } from '../../forge/standalone-context.ts';
import { TemperError } from '../../lib/errors.ts';
import { assertPackageDigest, type PackagedTool, parsePackage } from '../../tempering/packages/packages.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { readInputFile } from '../input/input-files.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { verifyAttestation } from './attestation.ts';

export interface ToolVerifyOptions {
  /** Path of the package; `-` reads standard input. */
  file: string;
  attestation: string;
  /** The public key that must have signed the attestation. */
  trustedKey: string;
  output: 'text' | 'json';
}

/** Verifies that the trusted key attested this package. Imports nothing, and runs nothing of the tool. */
export async function toolVerify(options: ToolVerifyOptions, io: CliIo): Promise<number> {
  const packaged = parsePackage(await readInputFile(options.file, 'the package', io));
  const digest = builtDigest(packaged, io);
  await verifyAttestation(options, digest, io);
  if (options.output === 'json') writeJsonLine(io, { tool: packaged.name, digest, verified: true });
  else io.out(`${packaged.name} (${digest}): the trusted key signed its attestation\n`);
  return EXIT.ok;
}

/**
 * The digest of the tool that a package builds, whatever digest the package states. Runs nothing of the tool. Throws the code of the gate
 * that refuses it, or TEMPER_PACKAGE_INVALID when the stated digest is another one.
 */
export function builtDigest(packaged: PackagedTool, io: CliIo): Digest {
  const source = { request: packaged.request };
  const op = { signal: io.signal, deadline: Number.POSITIVE_INFINITY, key: `verify-${packaged.name}` };
  const inspected = inspectTool(
    source,
    standaloneContext(source, () => undefined, op),
    createSchemaCompiler(),
  );
  if ('accepted' in inspected)
    throw new TemperError(inspected.code, `${packaged.name}: refused at gate ${inspected.gate}: ${inspected.message}`);
  const { digest } = inspected.open;
  assertPackageDigest(packaged, digest);
  return digest;
}
