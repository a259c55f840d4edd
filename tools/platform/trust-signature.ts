import { createHmac } from 'node:crypto';

/** The signed fields of a trust request, in the order in which they are signed. */
export interface TrustFields {
  requestTimestampUtc: string;
  applicationKey: string;
  persona: number;
  userName: string;
  serviceProviderID?: number | null;
  name?: string | null;
  userAccountID?: number | null;
  personID?: number | null;
}

/** The `authenticationCode` of a trust request: HMAC-SHA256, in padded base64, over nine lines joined by LF. Written out here and
 *  not imported, because the tour plays a foreign backend that has nothing but the documentation. */
export function signTrustRequest(fields: TrustFields, sharedSecret: string): string {
  const lines = [
    'TRUST-HMAC-SHA256',
    fields.requestTimestampUtc,
    fields.applicationKey,
    fields.persona,
    fields.userName,
    fields.serviceProviderID ?? '',
    fields.name ?? '',
    fields.userAccountID ?? '',
    fields.personID ?? '',
  ];
  return createHmac('sha256', sharedSecret).update(lines.join('\n'), 'utf8').digest('base64');
}
