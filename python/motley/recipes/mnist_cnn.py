"""The network of fashion-cnn on the digits of MNIST."""

from motley.recipes import fashion_cnn

if __name__ == "__main__":
    fashion_cnn.main("mnist")
