import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { TemperError } from '../../../lib/errors.ts';
import { printableDocument } from '../../../lib/printable.ts';
import { pullAttestations, pullTool } from '../../../oci/pull.ts';
import { parsePackage } from '../../../tempering/packages/packages.ts';
import { readInputFile } from '../../input/input-files.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { attestedBy } from '../attestation.ts';
import { builtDigest } from '../tool-verify.ts';
import { registryAccess, type RegistryAccessOptions } from './registry-access.ts';

export interface ToolPullOptions extends RegistryAccessOptions {
  /** Default: standard output. */
  file?: string;
  /** Write the attestation to this file. */
  attestation?: string;
  /** The public key that must have signed an attestation of the tool. */
  trustedKey?: string;
  output: 'text' | 'json';
}

/**
 * Pulls the package of a tool from an OCI registry. Nothing is imported, and no name that the registry sends is a path. Nothing is written
 * unless all of it is valid.
 */
export async function toolPull(options: ToolPullOptions, io: CliIo): Promise<number> {
  if (options.output === 'json' && options.file === undefined)
    throw new TemperError('TEMPER_USAGE', '-o json reports about the file that --file names; give --file too');
  const pem =
    options.trustedKey === undefined ? undefined : await readInputFile(options.trustedKey, '--trusted-key', io);
  const { reference, client, op } = registryAccess(options, 'pull', io);
  const pulled = await pullTool(client, reference, op);
  const packaged = parsePackage(pulled.package);
  const digest = builtDigest(packaged, io);
  const envelopes =
    pem === undefined && options.attestation === undefined ? [] : await pullAttestations(client, pulled.digest, op);
  const attestation = chooseAttestation(envelopes, pem, digest, options);
  // Control characters of the package stay escaped, in a terminal and in an editor.
  const text = printableDocument(pulled.package);
  if (options.attestation !== undefined && attestation !== undefined)
    await writeFile(resolve(io.cwd, options.attestation), attestation, { mode: 0o600 });
  if (options.file === undefined) {
    io.out(text);
    return EXIT.ok;
  }
  await writeFile(resolve(io.cwd, options.file), text, { mode: 0o600 });
  const verified = pem !== undefined;
  if (options.output === 'json')
    writeJsonLine(io, { tool: packaged.name, digest, reference: reference.text, manifest: pulled.digest, verified });
  else
    io.out(
      `${packaged.name} (${digest}) of ${reference.text}@${pulled.digest}${verified ? ', attested by the trusted key' : ''}\n`,
    );
  return EXIT.ok;
}

/** The attestation that the trusted key signed; without a key the only one. */
function chooseAttestation(
  envelopes: readonly string[],
  pem: string | undefined,
  digest: string,
  { attestation, reference }: ToolPullOptions,
): string | undefined {
  if (pem !== undefined) return attestedBy(envelopes, pem, digest);
  if (attestation === undefined) return undefined;
  const [first, second] = envelopes;
  if (first === undefined)
    throw new TemperError('TEMPER_NOT_FOUND', `${reference} has no attestation; leave --attestation out`);
  if (second === undefined) return first;
  throw new TemperError(
    'TEMPER_USAGE',
    `${reference} has ${envelopes.length} attestations; choose by --trusted-key FILE`,
  );
}
