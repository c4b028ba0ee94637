import { webcrypto } from 'node:crypto';
// Must be imported before the library, which otherwise throws.
import './reflect-metadata.ts';
import * as x509 from '@peculiar/x509';
import type { KeyPair, ServerNames, Validity } from './certificates.ts';

/**
 * Issues certificates. Import this module when a certificate is due, not before: the library takes 13 MB of memory, and most processes
 * issue none.
 */

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' } as const;
const SERIAL_BYTES = 16;
/** Certificates start in the past, so that they are valid on nodes whose clock is behind. */
const CLOCK_SKEW_MS = 300_000;

/** Creates a CA certificate that can sign server certificates, but no intermediate CA. `life` is in milliseconds. */
export async function createCa(name: string, now: Date, life: number): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: serialNumber(),
      name: `CN=${name}`,
      ...validity(now, life),
      signingAlgorithm: SIGNING,
      keys,
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    },
    webcrypto as Crypto,
  );
  return { certificate: pem(certificate), key: await keyPem(keys.privateKey) };
}

/** Issues a server certificate for these names and addresses; of a peer also a client certificate. `life` is in milliseconds. */
export async function issueCertificate(
  ca: KeyPair,
  { names, addresses, isPeer = false }: ServerNames,
  now: Date,
  life: number,
): Promise<KeyPair> {
  const issuer = new x509.X509Certificate(ca.certificate);
  const signingKey = await importKey(ca.key);
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.create(
    {
      serialNumber: serialNumber(),
      subject: `CN=${names[0] ?? 'temper'}`,
      issuer: issuer.subject,
      ...validity(now, life),
      signingAlgorithm: SIGNING,
      publicKey: keys.publicKey,
      signingKey,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([
          x509.ExtendedKeyUsage.serverAuth,
          ...(isPeer ? [x509.ExtendedKeyUsage.clientAuth] : []),
        ]),
        new x509.SubjectAlternativeNameExtension([
          ...names.map((value) => ({ type: 'dns' as const, value })),
          ...addresses.map((value) => ({ type: 'ip' as const, value })),
        ]),
        await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    },
    webcrypto as Crypto,
  );
  return { certificate: pem(certificate), key: await keyPem(keys.privateKey) };
}

function validity(now: Date, life: number): Validity {
  return { notBefore: new Date(now.getTime() - CLOCK_SKEW_MS), notAfter: new Date(now.getTime() + life) };
}

/** Positive, as RFC 5280 requires. */
function serialNumber(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(SERIAL_BYTES));
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return Buffer.from(bytes).toString('hex');
}

function pem(certificate: x509.X509Certificate): string {
  return `${certificate.toString('pem').trim()}\n`;
}

async function keyPem(key: webcrypto.CryptoKey): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', key);
  return `${x509.PemConverter.encode(der, 'PRIVATE KEY').trim()}\n`;
}

function importKey(text: string): Promise<webcrypto.CryptoKey> {
  const der = x509.PemConverter.decodeFirst(text);
  return webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
}
