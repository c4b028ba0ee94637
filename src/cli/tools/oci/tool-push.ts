import { systemClock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import { printableDocument } from '../../../lib/printable.ts';
import { MAX_LAYER_BYTES } from '../../../oci/manifest.ts';
import { pushTool } from '../../../oci/push.ts';
import { type PackageSource, exportPackage } from '../../../tempering/packages/packages.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import type { ClusterOptions } from '../../cluster/options.ts';
import { openPortableTool } from '../portable-tool.ts';
import type { StateToolOptions } from '../state-tool.ts';
import { registryAccess, type RegistryAccessOptions } from './registry-access.ts';

export interface ToolPushOptions extends StateToolOptions, RegistryAccessOptions, ClusterOptions {
  /** False: push the package alone. */
  attestation: boolean;
  output: 'text' | 'json';
}

/** Pushes a tool of the state folder or of a cluster to an OCI registry, with its signed attestation. */
export async function toolPush(options: ToolPushOptions, io: CliIo): Promise<number> {
  const { reference, client, op } = registryAccess(options, 'pull,push', io);
  if (reference.tag === undefined || reference.digest !== undefined)
    throw new TemperError('TEMPER_USAGE', `"${reference.text}" must name a tag and no digest, to push to it`);
  const portable = await openPortableTool(options, io);
  const { tool } = portable;
  const created = systemClock.now().toISOString();
  const attestation = options.attestation ? await portable.attestation() : undefined;
  const { name } = tool.artifact;
  const files = { package: packageOf(tool, created), name, toolDigest: tool.digest, created };
  const withAttestation = attestation === undefined ? files : { ...files, attestation };
  const digest = await pushTool(client, reference, withAttestation, op);
  if (options.output === 'json')
    writeJsonLine(io, {
      tool: name,
      digest: tool.digest,
      reference: reference.text,
      manifest: digest,
      attested: options.attestation,
    });
  else
    io.out(
      `${name} (${tool.digest}) is at ${reference.text}@${digest}${options.attestation ? ', with its attestation' : ''}\n`,
    );
  return EXIT.ok;
}

/** Throws TEMPER_PACKAGE_INVALID for a package that cannot be imported. */
function packageOf(tool: PackageSource, exportedAt: string): string {
  const { name } = tool.artifact;
  if (tool.sourceWithheld)
    throw new TemperError(
      'TEMPER_PACKAGE_INVALID',
      `${name} has no source in its object, so it could not be imported; push a tool that keeps its source`,
    );
  const text = printableDocument(exportPackage(tool, { form: 'json', exportedAt }));
  if (Buffer.byteLength(text) <= MAX_LAYER_BYTES) return text;
  throw new TemperError('TEMPER_PACKAGE_INVALID', `the package of ${name} is larger than ${MAX_LAYER_BYTES} bytes`);
}
