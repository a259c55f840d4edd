import { createIdentityProvider, identityProviderConfig } from './identity/identity-provider.neighbour';
import { runNeighbour } from './neighbour/neighbour';

void runNeighbour(identityProviderConfig, process.env, createIdentityProvider);
