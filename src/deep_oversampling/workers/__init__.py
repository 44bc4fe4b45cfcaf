"""Where trials are run: here, in several processes, on a Ray cluster."""

from .cells import Order
from .place import Here, Place
from .processes import Processes
from .ray_cluster import RayCluster

__all__ = ["Here", "Order", "Place", "Processes", "RayCluster"]
