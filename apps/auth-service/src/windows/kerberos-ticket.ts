/** The client's data is not a Kerberos ticket in a form that this service understands. */
export class InvalidTicketError extends Error {
  override readonly name = 'InvalidTicketError';
}

/**
 * Maximum length of a ticket in base64 characters. The service's limit on headers leaves this much room
 * beside the other headers.
 */
export const MAX_TICKET_CHARACTERS = 24 * 1024;

const SPNEGO = '06062b0601050502';
/** The OID of Kerberos 5, and a second OID that Windows also announces for it. */
const KERBEROS = ['06092a864886f712010202', '06092a864882f712010202'];
const AP_REQUEST_TOKEN_ID = '0100';

/** DER tags. `context` is the explicit tag [n]. */
const OBJECT_IDENTIFIER = 0x06;
const OCTET_STRING = 0x04;
const SEQUENCE = 0x30;
const GSS_TOKEN = 0x60;
const AP_REQUEST = 0x6e;
const context = (number: number): number => 0xa0 + number;

interface Element {
  tag: number;
  content: Buffer;
}

/**
 * Returns the ticket of an `Authorization: Negotiate <base64>` header. Null if the header is absent or has
 * another scheme.
 * @throws {InvalidTicketError} when it is too long or not standard base64
 */
export function negotiateTicket(authorization: string | undefined): Buffer | null {
  const [, base64] = /^negotiate +(.*)$/i.exec(authorization ?? '') ?? [];
  if (base64 === undefined) return null;
  if (base64.length > MAX_TICKET_CHARACTERS) throw new InvalidTicketError('too long');
  const ticket = Buffer.from(base64, 'base64');
  // A ticket has only one valid spelling. Node's decoder is lenient, so the result is encoded again and
  // compared.
  if (ticket.length === 0 || ticket.toString('base64') !== base64)
    throw new InvalidTicketError('not standard base64');
  return ticket;
}

/**
 * Returns the encrypted authenticator in a ticket: SPNEGO (RFC 4178) or bare, then the AP-REQ (RFC 4120). The
 * authenticator is unique to one use of a ticket. The bytes around it are unprotected, so the same
 * authenticator can be wrapped in many ways. Replays are therefore detected by the authenticator, never by
 * the whole token.
 * @throws {InvalidTicketError} for anything but exactly one AP-REQ without surplus bytes
 */
export function authenticatorOf(token: Buffer): Buffer {
  const { oid, body } = gssToken(token);
  if (oid !== SPNEGO) return authenticatorOfKerberosToken(oid, body);
  const init = fields(only(only(body, context(0)), SEQUENCE));
  const mechanismToken = init.get(context(2));
  if (mechanismToken === undefined) throw new InvalidTicketError('no mechanism token');
  const inner = gssToken(only(mechanismToken, OCTET_STRING));
  return authenticatorOfKerberosToken(inner.oid, inner.body);
}

function gssToken(token: Buffer): { oid: string; body: Buffer } {
  const content = only(token, GSS_TOKEN);
  const { element, end } = readElement(content, 0);
  if (element.tag !== OBJECT_IDENTIFIER) throw new InvalidTicketError('no mechanism');
  return { oid: content.subarray(0, end).toString('hex'), body: content.subarray(end) };
}

function authenticatorOfKerberosToken(oid: string, body: Buffer): Buffer {
  if (!KERBEROS.includes(oid)) throw new InvalidTicketError('not Kerberos');
  if (body.subarray(0, 2).toString('hex') !== AP_REQUEST_TOKEN_ID)
    throw new InvalidTicketError('not an AP-REQ');
  const request = fields(only(only(body.subarray(2), AP_REQUEST), SEQUENCE));
  const authenticator = request.get(context(4));
  if (request.size !== 5 || authenticator === undefined) throw new InvalidTicketError('not a whole AP-REQ');
  const encrypted = fields(only(authenticator, SEQUENCE));
  const cipher = encrypted.get(context(2));
  if (cipher === undefined) throw new InvalidTicketError('no authenticator');
  const bytes = only(cipher, OCTET_STRING);
  if (bytes.length === 0) throw new InvalidTicketError('empty authenticator');
  return bytes;
}

/** Returns the content of `bytes`, which must be exactly one element with this tag. */
function only(bytes: Buffer, tag: number): Buffer {
  const { element, end } = readElement(bytes, 0);
  if (element.tag !== tag || end !== bytes.length)
    throw new InvalidTicketError(`not exactly one element ${tag}`);
  return element.content;
}

/**
 * Returns the elements in `bytes` by tag. Tags must ascend, so that no field occurs twice and all parsers
 * agree on its value.
 */
function fields(bytes: Buffer): Map<number, Buffer> {
  const found = new Map<number, Buffer>();
  let lastTag = -1;
  for (let offset = 0; offset < bytes.length;) {
    const { element, end } = readElement(bytes, offset);
    if (element.tag <= lastTag) throw new InvalidTicketError('fields out of order');
    found.set(element.tag, element.content);
    lastTag = element.tag;
    offset = end;
  }
  return found;
}

function readElement(bytes: Buffer, offset: number): { element: Element; end: number } {
  const tag = bytes[offset];
  const first = bytes[offset + 1];
  if (tag === undefined || first === undefined) throw new InvalidTicketError('cut off');
  // Tickets contain no multi-byte tags and no indefinite lengths.
  if ((tag & 0x1f) === 0x1f || first === 0x80) throw new InvalidTicketError('not DER');
  const lengthBytes = first < 0x80 ? 0 : first - 0x80;
  const start = offset + 2 + lengthBytes;
  if (lengthBytes > 4 || start > bytes.length) throw new InvalidTicketError('cut off');
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(offset + 2, lengthBytes);
  const end = start + length;
  if (end > bytes.length) throw new InvalidTicketError('cut off');
  return { element: { tag, content: bytes.subarray(start, end) }, end };
}
