import { createIdentityProvider, identityProviderConfig } from './identity/identity-provider.neighbour';
import { runNeighbour } from './neighbour/run-neighbour';

void runNeighbour(identityProviderConfig, process.env, createIdentityProvider);
