import fc from 'fast-check';
import {
  InvalidTicketError,
  MAX_TICKET_CHARACTERS,
  authenticatorOf,
  negotiateTicket,
} from './kerberos-ticket';

/** Encodes DER. Lengths from 128 take two bytes. */
function der(tag: number, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content);
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(body.length);
  return Buffer.concat([Buffer.from([tag, 0x82]), length, body]);
}

const KERBEROS = Buffer.from('06092a864886f712010202', 'hex');
const SPNEGO = Buffer.from('06062b0601050502', 'hex');
const NTLM = Buffer.from('060a2b06010401823702020a', 'hex');
const integer = (value: number): Buffer => der(0x02, Buffer.from([value]));
const CIPHER = Buffer.alloc(192, 7);

const encrypted = (cipher: Buffer): Buffer => der(0x30, der(0xa0, integer(18)), der(0xa2, der(0x04, cipher)));
const apRequest = (cipher: Buffer, ...surplus: Buffer[]): Buffer =>
  der(
    0x6e,
    der(
      0x30,
      der(0xa0, integer(5)),
      der(0xa1, integer(14)),
      der(0xa2, der(0x03, Buffer.alloc(5))),
      der(0xa3, der(0x61, Buffer.alloc(400, 9))),
      der(0xa4, encrypted(cipher)),
      ...surplus,
    ),
  );
const bare = (request: Buffer): Buffer => der(0x60, KERBEROS, Buffer.from([1, 0]), request);
const spnego = (mechanismToken: Buffer, ...mechanisms: Buffer[]): Buffer =>
  der(
    0x60,
    SPNEGO,
    der(0xa0, der(0x30, der(0xa0, der(0x30, KERBEROS, ...mechanisms)), der(0xa2, der(0x04, mechanismToken)))),
  );

describe('authenticatorOf', () => {
  it('finds the same authenticator however the ticket is wrapped', () => {
    const wrapped = [
      bare(apRequest(CIPHER)),
      spnego(bare(apRequest(CIPHER))),
      spnego(bare(apRequest(CIPHER)), NTLM),
    ];
    for (const token of wrapped) expect(authenticatorOf(token)).toEqual(CIPHER);
  });

  it('accepts a length encoded in more bytes than necessary', () => {
    const request = apRequest(CIPHER);
    const padded = Buffer.concat([
      Buffer.from([0x60, 0x83, 0]),
      bare(request).subarray(2, 4),
      bare(request).subarray(4),
    ]);
    expect(authenticatorOf(padded)).toEqual(CIPHER);
  });

  it.each<[string, Buffer]>([
    ['nothing', Buffer.alloc(0)],
    ['NTLM', Buffer.from('NTLMSSP\0\x01\0\0\0\0\0\0\0', 'latin1')],
    ['another mechanism', spnego(der(0x60, NTLM, Buffer.from([1, 0]), apRequest(CIPHER)))],
    [
      'a negotiation without a ticket',
      der(0x60, SPNEGO, der(0xa0, der(0x30, der(0xa0, der(0x30, KERBEROS))))),
    ],
    ['bytes after the token', Buffer.concat([bare(apRequest(CIPHER)), Buffer.alloc(1)])],
    ['bytes after the AP-REQ', bare(Buffer.concat([apRequest(CIPHER), Buffer.alloc(2)]))],
    ['a sixth field', bare(apRequest(CIPHER, der(0xa5, integer(1))))],
    ['a second authenticator', bare(apRequest(CIPHER, der(0xa4, encrypted(Buffer.alloc(64, 8)))))],
    ['an empty authenticator', bare(apRequest(Buffer.alloc(0)))],
    ['an AP-REP', der(0x60, KERBEROS, Buffer.from([2, 0]), apRequest(CIPHER))],
    ['an indefinite length', Buffer.from('60800000', 'hex')],
    ['a length beyond the end', Buffer.from('6084ffffffff', 'hex')],
    ['a tag of several bytes', Buffer.from('7f600100', 'hex')],
  ])('refuses %s', (_, token) => {
    expect(() => authenticatorOf(token)).toThrow(InvalidTicketError);
  });

  it('refuses every cut-off ticket', () => {
    const token = spnego(bare(apRequest(CIPHER)));
    for (let length = 0; length < token.length; length += 1)
      expect(() => authenticatorOf(token.subarray(0, length))).toThrow(InvalidTicketError);
  });

  it('returns an authenticator or a refusal for any bytes', () => {
    const token = spnego(bare(apRequest(CIPHER)));
    const damaged = fc
      .array(fc.tuple(fc.nat(token.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
      .map((changes) => {
        const copy = Buffer.from(token);
        for (const [index, value] of changes) copy[index] = value;
        return copy;
      });
    const anything = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(fc.oneof(damaged, anything), (bytes) => {
        try {
          expect(authenticatorOf(bytes).length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidTicketError);
        }
      }),
    );
  });
});

describe('negotiateTicket', () => {
  it('decodes the ticket of the scheme in any letter case', () => {
    expect(negotiateTicket('Negotiate AQID')).toEqual(Buffer.from([1, 2, 3]));
    expect(negotiateTicket('NEGOTIATE   AQIDBA==')).toEqual(Buffer.from([1, 2, 3, 4]));
  });

  it.each([undefined, '', 'Bearer AQID', 'Negotiate', 'NegotiateAQID'])('finds no ticket in %j', (header) => {
    expect(negotiateTicket(header)).toBeNull();
  });

  it.each(['AQIDBA', 'AQID AQID', 'A-_D', '!', '', 'AQIDBB==', 'A'.repeat(MAX_TICKET_CHARACTERS + 4)])(
    'refuses the spelling %p',
    (base64) => {
      expect(() => negotiateTicket(`Negotiate ${base64}`)).toThrow(InvalidTicketError);
    },
  );
});
