import { X509Certificate } from 'node:crypto';

/** A certificate with its private key, both PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

export interface ServerNames {
  readonly names: readonly string[];
  readonly addresses: readonly string[];
  /** Also a client certificate: the server connects to other servers of its cluster. */
  readonly isPeer?: boolean;
}

export interface CertificateFacts extends Validity, ServerNames {
  readonly isPeer: boolean;
}

const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';

/** Undefined for text that is not a valid certificate. */
export function readCertificate(text: string | undefined): CertificateFacts | undefined {
  if (text === undefined) return undefined;
  try {
    const certificate = new X509Certificate(text);
    const { validFromDate: notBefore, validToDate: notAfter, subjectAltName = '' } = certificate;
    const alternatives = subjectAltName.split(', ');
    const of = (prefix: string) =>
      alternatives.filter((entry) => entry.startsWith(prefix)).map((entry) => entry.slice(prefix.length));
    // Undefined, against its type, in a certificate without the extension.
    const isPeer = (certificate.keyUsage as string[] | undefined)?.includes(CLIENT_AUTH) ?? false;
    return { notBefore, notAfter, names: of('DNS:'), addresses: of('IP Address:').map(canonicalAddress), isPeer };
  } catch {
    // An invalid certificate is replaced like a missing one.
    return undefined;
  }
}

/** Node prints an IPv6 address in full; the desired addresses are in the short form of Services. */
function canonicalAddress(address: string): string {
  return address.includes(':') ? new URL(`https://[${address}]`).hostname.slice(1, -1) : address;
}

/** Did this CA sign the certificate? Throws for text that is not a valid certificate. */
export function isSignedBy(certificate: string, authority: string): boolean {
  return new X509Certificate(certificate).verify(new X509Certificate(authority).publicKey);
}

/** Due for renewal: two thirds of the lifetime have passed. */
export function isDue({ notBefore, notAfter }: Validity, now: Date): boolean {
  const life = notAfter.getTime() - notBefore.getTime();
  return now.getTime() >= notBefore.getTime() + (life * 2) / 3;
}
