import { readFile } from 'node:fs/promises';
import { messageOf, TemperError } from '../../lib/errors.ts';
import type { Logger } from '../../telemetry/log.ts';
import { readCertificate } from './certificates.ts';

/** The endpoints ConfigMap of every namespace has a copy. */
const MAX_BYTES = 262_144;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/** The certificate authorities of a file that agents trust for their targets, beside the public ones. Read it again at each use. */
export class TargetAuthorities {
  readonly #file: string;
  readonly #log: Pick<Logger, 'error'>;
  #last: string | undefined;

  constructor(file: string, log: Pick<Logger, 'error'>) {
    this.#file = file;
    this.#log = log;
  }

  /** The certificates, PEM. A file that is not valid is logged, and its last valid content stays in use. */
  async read(): Promise<string | undefined> {
    try {
      this.#last = certificatesIn(await readFile(this.#file, 'utf8'));
    } catch (error) {
      const message = `${this.#file}: ${messageOf(error, 300)}`;
      this.#log.error(
        { error: new TemperError('TEMPER_CONFIGURATION_INVALID', message) },
        'no certificate authorities',
      );
    }
    return this.#last;
  }
}

/** Nothing but the certificates: the file could have a key beside them. Throws for text without one, with a broken one, or too large. */
export function certificatesIn(text: string): string {
  if (text.length > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
  const certificates = text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0) throw new Error('it has no certificate in PEM');
  const broken = certificates.findIndex((certificate) => readCertificate(certificate) === undefined);
  if (broken !== -1) throw new Error(`certificate ${broken + 1} is broken`);
  return `${certificates.join('\n')}\n`;
}
