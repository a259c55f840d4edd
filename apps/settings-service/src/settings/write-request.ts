import type { Author } from './audit-trail';
import type { SettingKey } from './setting-key';
import type { WriteHeaders } from './setting-request.decorator';
import type { WriteRequest } from './setting-writes.service';

/** A write of `key` as its caller asked for it. */
export function writeRequest(key: SettingKey, headers: WriteHeaders, caller: Author): WriteRequest {
  const { subject, personId, userId, name, personas } = caller;
  const { conditions, idempotencyKey, requestId } = headers;
  return {
    key,
    conditions,
    trail: { author: { subject, personId, userId, name, personas }, requestId, idempotencyKey },
  };
}
