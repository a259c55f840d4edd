import { BusUnavailableError } from '../errors';
import type { BusLink } from './bus-link';
import { PublishChannel } from './publish-channel';

/** Opens a confirm channel. @throws {BusUnavailableError} if there is no usable connection or it dies meanwhile. */
export async function openChannel(link: BusLink): Promise<PublishChannel> {
  const connection = link.getConnection();
  try {
    return new PublishChannel(link.bus, await connection.createConfirmChannel());
  } catch (error) {
    throw new BusUnavailableError(link.bus, 'no channel could be opened', { cause: error });
  }
}
